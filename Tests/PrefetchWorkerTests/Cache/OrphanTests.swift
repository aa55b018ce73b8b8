import ContentCache
import Core
import ImageFiles
import Jobs
import Logging
import TestSupport
import Testing

@testable import PrefetchWorker

/// Reserved space and named files of a worker that was killed.
@Suite("Orphans of dead workers", .timeLimit(.minutes(15)))
struct OrphanTests {
    /// A number that no worker has.
    private static let dead: Int64 = 900

    @Test func `A dead worker's files and reserved space are reclaimed before the cache counts as full`() async throws {
        try await withDepot { depot in
            try await leave(0..<5, in: depot)
            let budget = budget(depot)
            guard case .granted = try await budget.waitForSpace(900) else {
                Issue.record("The dead worker's room was not given back.")
                return
            }
            #expect(try depot.bytesOnDisk() == 0)
            #expect(try await depot.store.eviction.deadReservations(myself: depot.worker) == [])
            budget.giveBack(900)
            try await budget.trim()
            #expect(try await depot.store.cache.totals().reservedBytes == 0)
        }
    }

    @Test func `A live worker's files are not taken for orphans of a dead one`() async throws {
        try await withDepot { depot in
            // In the same process, but as another program would: with the lock file opened by itself.
            let other = try JobStore(path: depot.store.path)
            let living = try await other.workers.register(host: "test", pid: 2)
            try await leave(0..<5, in: depot)
            #expect(try await depot.collector().reclaimDeadReservations(myself: depot.worker) == 400)
            // They may be the other's, and may be the dead one's: they stay, and so does what is set aside for them.
            #expect(try depot.bytesOnDisk() == 500)
            #expect(try await depot.store.cache.totals().reservedBytes == 500)
            try await other.workers.unregister(worker: living)
            #expect(try await depot.collector().reclaimDeadReservations(myself: depot.worker) == 500)
            #expect(try depot.bytesOnDisk() == 0)
            try await other.close()
        }
    }

    /// The helper may have an unnamed file open, which takes space until the helper ends.
    @Test func `A dead worker's space stays reserved until its last helper has ended`() async throws {
        try await withDepot { depot in
            try await leave(0..<2, in: depot)
            let configuration = HelperConfiguration(
                count: 1, executable: "/bin/sh", arguments: ["-c", "exec sleep 1000"])
            let pool = HelperPool(
                configuration: configuration, limits: ImageLimits(), cache: depot.cache,
                logger: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })
            pool.connections.mark.hold(try depot.store.workers.helperMark(of: Self.dead))
            try await pool.withHelper { helper in
                // As the kernel does when the worker is killed.
                pool.connections.mark.close()
                let released = try await depot.collector().reclaimDeadReservations(myself: depot.worker)
                #expect(released == 0)
                helper.kill()
            }
            #expect(try await depot.collector().reclaimDeadReservations(myself: depot.worker) == 900)
        }
    }

    @Test func `A file that is being published is not deleted as an orphan`() async throws {
        try await withDepot { depot in
            try await leave(0..<3, in: depot)
            let collector = depot.collector()
            let mine = BlobHash(of: Depot.bytes(1, count: 100)).hex
            collector.publishing.take([mine, mine])
            collector.publishing.letGo([mine])
            #expect(try await collector.reclaimDeadReservations(myself: depot.worker) == 900)
            #expect(try depot.bytesOnDisk() == 100)
            collector.publishing.letGo([mine])
            #expect(collector.publishing.all == [])
            _ = try await depot.collector { $0.orphanGrace = 0 }.collect()
        }
    }

    @Test func `A full cache says what takes its space`() async throws {
        try await withDepot { depot in
            _ = try await depot.withPublisher(limit: 1_000) { try await depot.add(Array(0..<3), to: $0) }
            try await depot.store.cache.pin((0..<3).map(Depot.url))
            let budget = budget(depot)
            guard case .full(let reason) = try await budget.waitForSpace(800) else {
                Issue.record("There is no such room.")
                return
            }
            #expect(reason.contains("limit of 1000 (--cache-max-size)") && reason.contains("100 bytes more"))
            #expect(reason.contains(" 300 are pinned"), "\(reason)")
            #expect(budget.reasonOfShortage == reason)
            #expect(try await depot.store.cache.unpin((0..<3).map(Depot.url)) == 3)
            guard case .granted = try await budget.waitForSpace(800) else {
                Issue.record("What was unpinned can go.")
                return
            }
            #expect(budget.reasonOfShortage == nil)
            budget.giveBack(800)
            try await budget.trim()
        }
    }

    @Test func `A pause is announced once, and ends when a write has worked`() async throws {
        try await withDepot { depot in
            let disk = DiskWatch(cache: depot.cache, minimumFree: 0)
            #expect(!disk.rests())
            for _ in 0..<3 {
                disk.report("no space")
                #expect(disk.announce() == (disk.relapses == 1))
                #expect(!disk.worked() && !disk.rests())
                // The disk does work; it is the cache that is full.
                while await !disk.probe({ nil }) { try await Task.sleep(for: .milliseconds(5)) }
            }
            #expect(disk.worked())
            #expect(!disk.worked() && !disk.rests())
        }
    }

    private func budget(_ depot: Depot) -> CacheBudget {
        let budget = CacheBudget(store: depot.store, collector: depot.collector { $0.maxBytes = 1_000 })
        budget.use(by: depot.worker)
        return budget
    }

    /// Files with names and without rows, and 900 bytes set aside, of a worker that isn't there any more.
    private func leave(_ numbers: Range<Int>, in depot: Depot) async throws {
        try depot.leave(numbers.map { Depot.bytes($0, count: 100) })
        let granted = try await depot.store.eviction.reserve(900, for: Self.dead, limit: 1_000)
        #expect(granted == .granted(900))
    }
}
