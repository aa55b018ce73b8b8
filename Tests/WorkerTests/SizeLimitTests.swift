import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// `--cache-max-size` holds at every moment: what has a name, what has none yet, and what has lost it and is still open.
@Suite(.serialized, .timeLimit(.minutes(15))) struct SizeLimitTests {
    /// Bytes of all files of a cache that take up room, by their inodes.
    struct Sample {
        var named: Int64 = 0
        var unnamed: Int64 = 0
        var total: Int64 { named + unnamed }
    }

    /// Descriptors first: a file that gets its name meanwhile is counted once, and one that is evicted meanwhile, too.
    private static func sample(_ cache: String, of processes: [pid_t]) -> Sample {
        var sizes: [UInt64: (bytes: Int64, isNamed: Bool)] = [:]
        for process in processes {
            let folder = "/proc/\(process)/fd"
            for name in fileNames(in: folder) {
                var target = [CChar](repeating: 0, count: 4_096)
                guard readlink("\(folder)/\(name)", &target, target.count - 1) > 0 else { continue }
                let path = String(decoding: target.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
                var info = stat()
                guard path.hasPrefix(cache + "/blobs"), stat("\(folder)/\(name)", &info) == 0,
                    info.st_mode & S_IFMT == S_IFREG
                else { continue }
                sizes[UInt64(info.st_ino)] = (Int64(info.st_size), false)
            }
        }
        let root = cache + "/blobs/sha256"
        for shard in fileNames(in: root) {
            for name in fileNames(in: "\(root)/\(shard)") {
                var info = stat()
                guard lstat("\(root)/\(shard)/\(name)", &info) == 0 else { continue }
                sizes[UInt64(info.st_ino)] = (Int64(info.st_size), true)
            }
        }
        return sizes.values.reduce(into: Sample()) { sample, file in
            if file.isNamed { sample.named += file.bytes } else { sample.unnamed += file.bytes }
        }
    }

    /// A picture whose bytes are its own, of about 24 KB that don't compress.
    private static func picture(_ request: LoopbackOrigin.Request) -> LoopbackReply {
        guard let number = Int(request.path.dropFirst().prefix { $0.isNumber }) else { return .status(404) }
        return .ok(
            TestImages.png(96, 84) { x, y in
                var hash = UInt64(number) &* 0x9E37_79B9_7F4A_7C15 &+ UInt64(x) &* 1_000_003 &+ UInt64(y) &* 7_919
                hash ^= hash >> 29
                hash = hash &* 0xBF58_476D_1CE4_E5B9
                return (
                    UInt8(truncatingIfNeeded: hash >> 40), UInt8(truncatingIfNeeded: hash >> 48),
                    UInt8(truncatingIfNeeded: hash >> 56), 255
                )
            })
    }

    @Test(arguments: [400_000, 1_500_000])
    func `With several workers and a kill no sample exceeds the limit, and all comes through`(_ limit: Int64)
        async throws
    {
        try await withWorker(Self.picture) { w in
            try await w.run("init")
            let urls = (0..<200).map { w.url("/\($0).jpg") }
            try await w.run(
                ["enqueue", "-f", "-", "--variant", "a=64x,png", "--variant", "b=32x,webp"],
                input: urls.joined(separator: "\n"))
            let arguments = ["--cache-max-size", "\(limit)B", "--drain"]
            var children = try (0..<3).map { _ in try w.start(TestWorker.quick + arguments) }
            let cache = try #require(
                realpath(w.cache, nil).map { path in
                    defer { free(path) }
                    return String(cString: path)
                })
            var worst = Sample()
            var count = 0
            var processes = w.processes
            let clock = ContinuousClock()
            let end = clock.now + .seconds(90)
            while clock.now < end, children.contains(where: { $0.exit == nil }) {
                if count % 25 == 0 { processes = w.processes }
                let sample = Self.sample(cache, of: processes)
                if sample.total > worst.total { worst = sample }
                count += 1
                if count == 60 {
                    children[0].send(SIGKILL)
                    _ = try await children[0].wait()
                    children[0] = try w.start(TestWorker.quick + arguments)
                }
                try await clock.sleep(for: .milliseconds(20))
            }
            #expect(worst.total <= limit, "\(worst.named) named and \(worst.unnamed) unnamed of \(limit)")
            #expect(count > 20)
            for child in children { #expect(try await child.wait(atMost: .seconds(60)) == .code(0)) }
            #expect(try await w.rows("SELECT state, count(*) FROM items GROUP BY state") == ["done|200"])
            let told = try children.map { try w.errors(of: $0) }.joined()
            #expect(!told.contains("No space left on device"), "\(told)")
        }
    }
}
