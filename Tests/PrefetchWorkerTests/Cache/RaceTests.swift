import ContentCache
import Glibc
import Jobs
import SystemPackage
import TestSupport
import Testing

@testable import PrefetchWorker

/// Writers, collectors and verifications at the same time, and processes that commit beside each other: that for a minute,
/// the others for a quarter of it, since workers do the same as processes elsewhere. `FAULT_SECONDS` says otherwise.
@Suite("Races", .timeLimit(.minutes(30)))
struct RaceTests {
    static let seconds = getenv("FAULT_SECONDS").flatMap { Double(String(cString: $0)) } ?? 60
    static let limit: Int64 = 60_000

    @Test func `Writers, a collector without grace and a verification leave no dangling reference`() async throws {
        try await withDepot { depot in
            let end = ContinuousClock.now + .seconds(Self.seconds / 4)
            let folder = depot.cache.directory.removingLastComponent()
            let ended = Shared(0)
            let worst = Shared<Int64>(0)
            try await withThrowingTaskGroup { group in
                for writer in 0..<4 {
                    group.addTask {
                        let mine = try await Depot(folder)
                        var generator = SeededGenerator(seed: UInt64(writer))
                        try await mine.withPublisher(limit: Self.limit) { publisher in
                            while ContinuousClock.now < end {
                                let numbers = (0..<50).map { _ in Int.random(in: 0..<1_000, using: &generator) }
                                let endings = try await mine.add(numbers, to: publisher)
                                ended.withLock { $0 += endings.count }
                            }
                        }
                        try await mine.store.workers.unregister(worker: mine.worker)
                        try await mine.store.close()
                    }
                }
                group.addTask {
                    while ContinuousClock.now < end {
                        let report = try await depot.collector {
                            $0.orphanGrace = 0
                            $0.maxBytes = Self.limit / 2
                        }.collect()
                        #expect(report.trouble == nil)
                    }
                }
                group.addTask {
                    while ContinuousClock.now < end {
                        let audit = try await CacheAudit.run(store: depot.store, cache: depot.cache)
                        #expect(audit.isSound, "\(audit)")
                    }
                }
                group.addTask {
                    while ContinuousClock.now < end {
                        let bytes = try depot.bytesAtOneMoment()
                        worst.withLock { $0 = max($0, bytes) }
                        try await Task.sleep(for: .milliseconds(20))
                    }
                }
                try await group.waitForAll()
            }
            #expect(worst.withLock { $0 } <= Self.limit)
            #expect(ended.withLock { $0 } > 0)
        }
    }

    /// Eight processes commit and checkpoint at the same time.
    @Test(.enabled(if: access(committer, X_OK) == 0, "there is no TestHelper beside the tests"))
    func `Every acknowledged commit is in the database`() async throws {
        try await withTemporaryDirectory { folder in
            let database = folder.appending("worker.db").string
            try await JobStore(path: database).close()
            let writers = try (0..<8).map { number in
                try RunningProgram(
                    Self.committer, ["commit", database, "\(Self.seconds)"],
                    files: .init(output: folder.appending("\(number).out").string), environment: [:])
            }
            for writer in writers {
                #expect(try await writer.wait(atMost: .seconds(Self.seconds + 120)) == .code(0))
            }
            let store = try JobStore(path: database)
            // All at once: a look for one URL reads every item.
            let list = folder.appending("items").string
            let shell = try RunningProgram(
                try #require(ChildProcess.find("sqlite3")),
                [database, "SELECT job || ' ' || url FROM items"], files: .init(output: list), environment: [:])
            #expect(try await shell.wait(atMost: .seconds(120)) == .code(0))
            let there = Set(
                String(decoding: TestSupport.ProcessTable.contents(of: list) ?? [], as: UTF8.self).split(
                    separator: "\n"))
            var acknowledged = 0
            for number in 0..<8 {
                let text = String(
                    decoding: TestSupport.ProcessTable.contents(of: folder.appending("\(number).out").string) ?? [],
                    as: UTF8.self)
                for line in text.split(separator: "\n") {
                    #expect(there.contains(line.split(separator: " ").prefix(2).joined(separator: " ")[...]))
                    acknowledged += 1
                }
            }
            #expect(acknowledged > 8)
            #expect(try await store.reports.backlog().queued == acknowledged)
            #expect(try await store.maintenance.integrity().complaints == [])
            try await store.close()
        }
    }

    private static let committer = Workplace.executable.removingLastComponent().appending("TestHelper").string
}
