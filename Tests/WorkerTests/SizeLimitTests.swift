import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// `--cache-max-size` holds at every moment, for files with a name, without one yet, and unlinked but still open.
@Suite(.serialized, .timeLimit(.minutes(15))) struct SizeLimitTests {
    /// Bytes of all files of a cache that take up room.
    struct Sample {
        var named: Int64 = 0
        var unnamed: Int64 = 0
        var total: Int64 { named + unnamed }
        /// Milliseconds since the kill; nil before it.
        var sinceKill: Int64?
    }

    /// A file at the moment that it was looked at. The number of an inode is used again as soon as its file is gone, most
    /// often under the same descriptor, so its birth is compared as well.
    private struct Seen {
        var bytes: Int64
        var isNamed: Bool
        /// Differs for each file that has had the same inode.
        var generation: [Int]
    }

    /// The files that existed at one moment, at least: a pass over all processes and folders takes milliseconds, in which one
    /// file may go and another take its place, so two passes are made, and what both saw was there between them.
    private static func sample(_ cache: String, of processes: [pid_t]) -> Sample {
        let earlier = pass(cache, of: processes)
        let later = pass(cache, of: processes)
        return earlier.reduce(into: Sample()) { sample, entry in
            guard let again = later[entry.key], again.generation == entry.value.generation else { return }
            let bytes = min(entry.value.bytes, again.bytes)
            if entry.value.isNamed { sample.named += bytes } else { sample.unnamed += bytes }
        }
    }

    /// All files by their inodes. Descriptors first: a file that gets its name meanwhile is seen once, and one that is
    /// evicted meanwhile, too.
    private static func pass(_ cache: String, of processes: [pid_t]) -> [UInt64: Seen] {
        var found: [UInt64: Seen] = [:]
        for process in processes {
            let folder = "/proc/\(process)/fd"
            for name in fileNames(in: folder) {
                var target = [CChar](repeating: 0, count: 4_096)
                guard readlink("\(folder)/\(name)", &target, target.count - 1) > 0 else { continue }
                let path = String(decoding: target.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
                guard path.hasPrefix(cache + "/blobs") else { continue }
                note("\(folder)/\(name)", isNamed: false, in: &found)
            }
        }
        let root = cache + "/blobs/sha256"
        for shard in fileNames(in: root) {
            for name in fileNames(in: "\(root)/\(shard)") {
                note("\(root)/\(shard)/\(name)", isNamed: true, in: &found)
            }
        }
        return found
    }

    private static func note(_ path: String, isNamed: Bool, in found: inout [UInt64: Seen]) {
        // A name may be a symbolic link; a descriptor is always one, to the file that is open.
        let file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | (isNamed ? O_NOFOLLOW : 0))
        guard file >= 0 else { return }
        defer { close(file) }
        var info = stat()
        guard fstat(file, &info) == 0, info.st_mode & S_IFMT == S_IFREG else { return }
        var generation = 0
        // Where the file system tells none, files that have changed between two passes are left out.
        let isTold = ioctl(file, Self.getVersion, &generation) == 0
        found[UInt64(info.st_ino)] = Seen(
            bytes: Int64(info.st_size), isNamed: isNamed,
            generation: isTold ? [generation & 0xFFFF_FFFF] : [info.st_ctim.tv_sec, info.st_ctim.tv_nsec])
    }

    /// `FS_IOC_GETVERSION` of ioctl_iflags(2), a macro that Swift doesn't see.
    private static let getVersion: UInt = 0x8008_7601

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
    func `No sample of several workers' cache exceeds the limit, and all items end`(_ limit: Int64)
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
            var killedAt: ContinuousClock.Instant?
            while clock.now < end, children.contains(where: { $0.exit == nil }) {
                if count % 25 == 0 { processes = w.processes }
                var sample = Self.sample(cache, of: processes)
                sample.sinceKill = killedAt.map { Int64(($0.duration(to: clock.now)) / .milliseconds(1)) }
                if sample.total > worst.total { worst = sample }
                count += 1
                if count == 60 {
                    children[0].send(SIGKILL)
                    killedAt = clock.now
                    _ = try await children[0].wait()
                    children[0] = try w.start(TestWorker.quick + arguments)
                }
                try await clock.sleep(for: .milliseconds(20))
            }
            #expect(
                worst.total <= limit,
                "\(worst.named) named and \(worst.unnamed) unnamed, \(worst.sinceKill.map { "\($0) ms after" } ?? "before") the kill"
            )
            // The samples do see what is there: the cache fills up.
            #expect(worst.total > limit / 4, "\(worst.total) of \(limit)")
            #expect(count > 20)
            for child in children { #expect(try await child.wait(atMost: .seconds(60)) == .code(0)) }
            #expect(try await w.rows("SELECT state, count(*) FROM items GROUP BY state") == ["done|200"])
            let told = try children.map { try w.errors(of: $0) }.joined()
            #expect(!told.contains("No space left on device"), "\(told)")
        }
    }
}
