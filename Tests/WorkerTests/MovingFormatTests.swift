import Synchronization
import TestSupport
import Testing

/// Animations in the newer formats, and HEIC, through the built worker and its helpers.
@Suite(.serialized, .timeLimit(.minutes(15))) struct MovingFormatTests {
    @Test func `Animated AVIF, JPEG XL and PNG are converted into each other, and a still into HEIC`() async throws {
        let gif = TestImages.gif(40, 30, frames: [100, 200, 10])
        let first = try await renditions(of: gif, ["avif", "jxl", "png"])
        #expect(first[2].starts(with: [0x89, 0x50, 0x4E, 0x47]))
        for (source, format) in zip(first, ["avif", "jxl", "png"]) {
            // A rendition that is itself the source of this round has all frames, or it would not be made of three.
            let made = try await renditions(of: source, ["webp", "avif", "jxl", "auto"])
            #expect(made.count == 4 && made.allSatisfy { !$0.isEmpty }, "\(format)")
        }
        try await withWorker({ _ in .ok(TestImages.png(160, 120)) }) { w in
            try await w.enqueue(w.url("/a.png"), "--variant", "v=80x,heic")
            try await w.drain()
            let kept = try await w.rows("SELECT format, width, height FROM results WHERE variant = 'v'")
            #expect(kept == ["heic|80|60"])
            let file = try w.bytes(of: try await w.path(w.url("/a.png"), variant: "v"))
            #expect(Array(file[4..<12]) == Array("ftypheic".utf8))
        }
    }

    /// A variant in each format, of three frames.
    private func renditions(of source: [UInt8], _ formats: [String]) async throws -> [[UInt8]] {
        let files = Mutex<[[UInt8]]>([])
        try await withWorker({ _ in .ok(source) }) { w in
            let variants = formats.flatMap { ["--variant", "\($0)=20x,\($0)"] }
            try await w.enqueue([w.url("/a")] + variants)
            try await w.drain()
            #expect(try await w.value("SELECT DISTINCT frames FROM results") == "3")
            for format in formats {
                let path = try await w.path(w.url("/a"), variant: format)
                let bytes = try w.bytes(of: path)
                files.withLock { $0.append(bytes) }
                guard format != "auto" else { continue }
                let name = try await w.value("SELECT format FROM results WHERE variant = '\(format)'")
                #expect(name == format)
            }
        }
        return files.withLock { $0 }
    }
}
