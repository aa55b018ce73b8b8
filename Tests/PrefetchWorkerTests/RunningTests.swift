import ContentCache
import Core
import SystemPackage
import TestSupport
import Testing

@testable import Jobs
@testable import PrefetchWorker

@Suite("A run's disk and numbers", .timeLimit(.minutes(15)))
struct RunningTests {
    private func withCache<R>(_ body: (ContentCache) throws -> R) throws -> R {
        try withTemporaryDirectory { try body(ContentCache(directory: $0)) }
    }

    @Test func `A disk with enough space is no trouble`() throws {
        try withCache { #expect(DiskWatch(cache: $0, minimumFree: 0).trouble() == nil) }
    }

    @Test func `A disk with less space than --min-free is trouble, with the numbers`() throws {
        try withCache { cache in
            let trouble = try #require(DiskWatch(cache: cache, minimumFree: .max).trouble())
            #expect(trouble.hasPrefix("Only "))
            #expect(trouble.contains(" MiB are free for the cache \(cache.directory), less than the 8796093022207 MiB"))
        }
    }

    @Test func `A reported trouble stays until the next probe`() throws {
        try withCache { cache in
            let disk = DiskWatch(cache: cache, minimumFree: 0)
            disk.report("Nothing can be written.")
            #expect(disk.trouble() == "Nothing can be written.")
            #expect(disk.trouble() == "Nothing can be written.")
        }
    }

    /// A worker goes on within five seconds once there is space; this is the part that it waits.
    @Test func `A failing disk is probed again within two seconds, however often it has failed`() {
        let waits = (0..<100).map(DiskWatch.wait)
        #expect(waits.allSatisfy { (1...2_000).contains($0) })
        #expect(waits == waits.sorted())
    }

    @Test func `A run remembers a bounded number of its last jobs`() {
        let statistics = RunStatistics()
        for job in Int64(1)...25_000 { statistics.saw(jobs: [job]) }
        #expect((RunStatistics.maxJobs / 2...RunStatistics.maxJobs).contains(statistics.jobs.count))
        #expect(statistics.jobs.isSuperset(of: 20_001...25_000))
    }

    @Test func `Every ending is counted once, under its name`() {
        let statistics = RunStatistics()
        let source = SourceRecord(key: "k", hash: "h", size: 10, isKept: true, fetchedAt: WallTime(milliseconds: 1))
        let done = Completion(source: source, renditions: [], newVariants: [], origin: .network)
        let cached = Completion(source: source, renditions: [], newVariants: [], origin: .disk)
        let entry = BlacklistEntry(
            url: "u", host: "h", failure: .http(404), httpStatus: 404, message: nil, count: 1, firstAt: 1, lastAt: 1,
            expiresAt: WallTime(milliseconds: 2))
        let record = Failure(.badImage, "m")
        let endings: [ItemEnding] = [
            .done(done), .done(cached), .failed(record), .failed(Failure(.dns, "m")), .blacklisted(entry),
            .retry(at: WallTime(milliseconds: 1), record, blockingHost: false), .wait(until: WallTime(milliseconds: 1)),
            .release,
        ]
        for ending in endings { statistics.count(ending) }
        statistics.saw(jobs: [1, 2, 1])
        var expected = RunStatistics.Counts()
        (expected.done, expected.cached, expected.failed, expected.blacklisted) = (1, 1, 2, 1)
        (expected.retried, expected.released, expected.unreachable, expected.bytes) = (2, 1, 1, 10)
        #expect(statistics.counts == expected)
        #expect(statistics.counts.ended == 5)
        #expect(statistics.jobs == [1, 2])
    }
}
