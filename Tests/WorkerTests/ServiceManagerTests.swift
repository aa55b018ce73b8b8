import Glibc
import Synchronization
import TestSupport
import Testing

/// Messages to systemd for `Type=notify` and `WatchdogSec=`, with a socket in systemd's place.
@Suite(.timeLimit(.minutes(15))) struct ServiceManagerTests {
    /// A datagram socket that collects what is sent to it.
    private final class Listener: Sendable {
        let path: String
        private let descriptor: Int32
        private let received = Mutex<[String]>([])

        init(_ path: String) throws {
            self.path = path
            descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
            let result = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                    bind(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            try #require(result == 0)
        }

        deinit { close(descriptor) }

        /// The lines of all messages so far.
        var lines: [String] {
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while true {
                let count = recv(descriptor, &buffer, buffer.count, 0)
                guard count > 0 else { break }
                let text = String(decoding: buffer.prefix(count), as: UTF8.self)
                received.withLock { $0 += text.split(separator: "\n").map(String.init) }
            }
            return received.withLock { $0 }
        }
    }

    @Test func `The service manager is notified of the start, the watchdog's beats and the stop`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let listener = try Listener("/tmp/prefetch-notify-\(getpid()).socket")
            defer { unlink(listener.path) }
            let worker = try w.start(
                TestWorker.quick, environment: ["NOTIFY_SOCKET": listener.path, "WATCHDOG_USEC": "400000"])
            try await w.eventually("it is ready and alive") {
                let lines = listener.lines
                return lines.count { $0 == "READY=1" } == 1 && lines.count { $0 == "WATCHDOG=1" } >= 3
            }
            try await w.enqueue(w.url("/1.png"))
            try await w.eventually("the status counts") { listener.lines.contains("STATUS=1 done, 0 cached, 0 failed") }
            #expect(!listener.lines.contains("STOPPING=1"))
            worker.send(SIGTERM)
            #expect(try await worker.wait() == .code(0))
            #expect(listener.lines.contains("STOPPING=1"))
        }
    }

    @Test(arguments: ["", "relative", "/" + String(repeating: "x", count: 200), "/nowhere/at/all"])
    func `An unusable notification socket stops no worker`(_ path: String) async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"))
            let told = try await w.run(
                ["run", "--drain"] + TestWorker.quick,
                environment: ["NOTIFY_SOCKET": path, "WATCHDOG_USEC": "99999999999999999999"])
            #expect(told.output.hasPrefix("1 done"))
        }
    }
}
