import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// Pictures that differ by their number.
enum Pictures {
    private static let made = Mutex<[Int: [UInt8]]>([:])

    /// 64×48, another colour for each number.
    static func png(_ number: Int) -> [UInt8] {
        made.withLock { made in
            if let known = made[number] { return known }
            let bytes = TestImages.png(
                64, 48, pixel: TestImages.solid((UInt8(number * 37 & 255), UInt8(number >> 8 & 255), 90, 255)))
            made[number] = bytes
            return bytes
        }
    }

    private static let photograph = ProcessTable.contents(
        of: Guide.root.appending("docs").appending("contact-sheet.jpg").string)

    /// A photograph of 900×679 that has other bytes for each name; nil if there is none.
    static func photograph(named name: some StringProtocol) -> [UInt8]? {
        guard let photograph else { return nil }
        // A comment behind the JPEG's first marker.
        let comment = Array(name.utf8)
        let segment = [0xFF, 0xFE] + TestImages.big(comment.count + 2, 2) + comment
        return photograph.prefix(2) + segment + photograph.dropFirst(2)
    }

    /// `/7.png` is picture 7, whatever its query; anything else is a 404.
    static func reply(_ request: LoopbackOrigin.Request) -> LoopbackReply {
        guard let number = number(in: request.path) else { return .status(404) }
        return .ok(png(number), type: "image/png")
    }

    /// The same with 16×12 pixels, so that thousands are made in no time.
    static func tiny(_ request: LoopbackOrigin.Request) -> LoopbackReply {
        guard let number = number(in: request.path) else { return .status(404) }
        let colour = TestImages.solid((UInt8(number * 37 & 255), UInt8(number >> 8 & 255), 90, 255))
        return .ok(TestImages.png(16, 12, pixel: colour), type: "image/png")
    }

    static func number(in path: String) -> Int? { Int(path.dropFirst().prefix { $0 != "." }) }

    /// A JPEG of 320×240, encoded by the worker itself.
    static func jpeg() async throws -> [UInt8] {
        let source = TestImages.png(160, 120)
        let made = Mutex<[UInt8]>([])
        try await withWorker({ _ in .ok(source) }) { w in
            try await w.enqueue(w.url("/a"), "--variant", "it=320x240,fill,enlarge,jpeg,q90")
            try await w.drain()
            let bytes = try w.bytes(of: try await w.path(w.url("/a"), variant: "it"))
            made.withLock { $0 = bytes }
        }
        return made.withLock { $0 }
    }
}

/// Replies of a script that have not been given yet; paths that are not in it are pictures.
final class Turns: Sendable {
    private let left: Mutex<[String: [LoopbackReply]]>

    init(_ script: [String: [LoopbackReply]]) { left = Mutex(script) }

    func next(_ request: LoopbackOrigin.Request) -> LoopbackReply {
        left.withLock { left in
            guard let replies = left[request.path], let reply = replies.first else { return Pictures.reply(request) }
            if replies.count > 1 { left[request.path]?.removeFirst() }
            return reply
        }
    }
}

/// Holds up an origin's replies until a test lets them go. Blocks the threads of connections, which serve nothing else.
final class Gate: Sendable {
    private let isOpen = Mutex(false)

    func open() { isOpen.withLock { $0 = true } }

    /// Waits, but not for ever, so that a test which failed can end.
    func wait(atMost seconds: Int = 20) {
        for _ in 0..<(200 * seconds) where !isOpen.withLock({ $0 }) { usleep(5_000) }
    }
}
