import Glibc
import SystemPackage
import TestSupport
import Testing

/// Four workers that fill one small cache, collections without grace and verifications, all of them processes of their own.
/// One minute; `FAULT_SECONDS` says otherwise.
@Suite("Races of processes", .timeLimit(.minutes(30)))
struct RaceFaultTests {
    static let limit: Int64 = 400_000

    @Test func `A cache of several workers stays within its limit and has no dangling entries`() async throws {
        try await withWorker { w in
            let end = ContinuousClock.now + .seconds(FaultScale.number("FAULT_SECONDS", 60))
            // Some are always on their way, the same pictures again and again.
            for _ in 0..<4 {
                _ = try await w.startRegistered(
                    "--cache-max-size", "\(Self.limit)B", "--collect-every", "200ms", "--orphan-grace", "0",
                    "--keep-jobs", "5s", "--quiet")
            }
            try await withThrowingTaskGroup { group in
                group.addTask { try await Self.repeated(until: end) { try await Self.add(to: w) } }
                group.addTask {
                    try await Self.repeated(until: end) {
                        try await w.run(
                            "cache", "gc", "--orphan-grace", "0", "--cache-max-size", "\(Self.limit / 2)B")
                    }
                }
                group.addTask {
                    try await Self.repeated(until: end) {
                        let verified = try await w.run("cache", "verify", expecting: nil)
                        #expect(verified.exit == .code(0), "\(verified.output)\(verified.errors)")
                    }
                }
                group.addTask {
                    try await Self.repeated(until: end) {
                        let sample = try await CacheSample.take(w)
                        #expect(sample.bytes <= Self.limit, "\(sample)")
                        try await Task.sleep(for: .milliseconds(300))
                    }
                }
                try await group.waitForAll()
            }
            try await w.eventually("what is left has ended", within: .seconds(120)) {
                try await w.value("SELECT ifnull(sum(queued + active + delayed), 0) FROM jobs") == "0"
            }
            #expect(try await w.value("SELECT count(*) FROM failures") == "0")
            #expect(try await w.value("SELECT evicted_blobs > 100 FROM cache_totals") == "1")
        }
    }

    private static func repeated(
        until end: ContinuousClock.Instant, _ body: () async throws -> Void,
    ) async throws {
        while ContinuousClock.now < end { try await body() }
    }

    private static func add(to w: TestWorker) async throws {
        let backlog = try await w.value("SELECT ifnull(sum(queued + active + delayed), 0) FROM jobs")
        guard (Int(backlog) ?? 0) < 200 else { return try await Task.sleep(for: .milliseconds(50)) }
        try await w.sql(
            """
            WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 49)
            INSERT INTO jobs (variants, urls) SELECT 'small=24x18,png half=32x24,jpeg,q80',
                json_group_array('\(w.url("/"))' || (abs(random()) % 1000) || '.png') FROM n
            """)
    }
}

/// How many bytes lie in a cache at one moment: files with names, and files that a process is writing.
///
/// Removed files that a process still has open for a moment no longer count.
private struct CacheSample: CustomStringConvertible {
    private(set) var named: Int64 = 0
    private(set) var unnamed: Int64 = 0

    var bytes: Int64 { named + unnamed }
    var description: String { "\(named) named, \(unnamed) without a name yet" }

    private struct File: Hashable {
        let device: dev_t
        let number: ino_t
    }

    /// While it is taken, all that works on the cache is stopped: what goes and what comes would both be counted.
    static func take(_ w: TestWorker) async throws -> CacheSample {
        var stopped: Set<pid_t> = []
        defer { for process in stopped { kill(process, SIGCONT) } }
        // Until no new one has turned up meanwhile.
        while case let new = Set(w.processes).subtracting(stopped), !new.isEmpty {
            for process in new { kill(process, SIGSTOP) }
            stopped.formUnion(new)
            for process in new {
                for _ in 0..<2_000 where !ProcessTable.isStopped(process) {
                    try await Task.sleep(for: .milliseconds(1))
                }
            }
        }
        var (sample, seen) = (CacheSample(), Set<File>())
        let root = "\(w.cache)/blobs/sha256"
        for blob in w.blobs { sample.named += size(of: "\(root)/\(blob)", &seen) }
        for process in stopped {
            for number in fileNames(in: "/proc/\(process)/fd") {
                let link = "/proc/\(process)/fd/\(number)"
                guard target(of: link).hasPrefix(root) else { continue }
                sample.unnamed += size(of: link, writable: true, &seen)
            }
        }
        return sample
    }

    /// Of a file that was not seen yet. One that is about to get its name, or had one, can't be written any more.
    private static func size(of path: String, writable: Bool = false, _ seen: inout Set<File>) -> Int64 {
        var info = stat()
        guard stat(path, &info) == 0, info.st_mode & S_IFMT == S_IFREG, !writable || info.st_mode & S_IWUSR != 0,
            seen.insert(File(device: info.st_dev, number: info.st_ino)).inserted
        else { return 0 }
        return Int64(info.st_size)
    }

    private static func target(of link: String) -> String {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let length = readlink(link, &buffer, buffer.count)
        return String(decoding: buffer.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
