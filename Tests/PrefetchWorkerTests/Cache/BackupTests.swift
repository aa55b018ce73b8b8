import Core
import Jobs
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import PrefetchWorker

@Suite("Copies of the database", .timeLimit(.minutes(15)))
struct BackupTests {
    private static let day: Int64 = 86_400_000

    @Test func `Backups dated by a clock that was ahead are deleted first, and delay no other backup`() async throws {
        try await withTemporaryDirectory { folder in
            let now = Mutex(WallTime(milliseconds: 1_800_000_000_000))
            let store = try JobStore(
                path: folder.appending("worker.db").string, now: { now.withLock { $0 } }, uptime: { 0 })
            var plan = BackupPlan(folder: folder.appending("copies").string)
            plan.keep = 3
            func advance(_ time: Int64) { now.withLock { $0 = $0 + time } }
            let year = 365 * Self.day
            for _ in 0..<3 {
                try await plan.makeIfDue(of: store)
                advance(Self.day)
            }
            let ahead = fileNames(in: plan.folder)
            #expect(ahead.count == 3)
            advance(-10 * year)
            for _ in 0..<2 {
                try await plan.makeIfDue(of: store)
                let made = Set(fileNames(in: plan.folder))
                // Not again at once.
                advance(60_000)
                try await plan.makeIfDue(of: store)
                #expect(Set(fileNames(in: plan.folder)) == made)
                #expect(made.count == 3)
                advance(Self.day)
            }
            #expect(Set(fileNames(in: plan.folder)).intersection(ahead).count == 1)
            try await store.close()
        }
    }

    @Test func `Several workers with one folder make one whole backup`() async throws {
        try await withTemporaryDirectory { folder in
            let path = folder.appending("worker.db").string
            let stores = try (0..<4).map { _ in
                try JobStore(path: path, now: { WallTime(milliseconds: 1_800_000_000_000) }, uptime: { 0 })
            }
            _ = try await stores[0].queue.enqueue(NewJob(urls: (0..<500).map { "https://a.example/\($0).jpg" }))
            let plan = BackupPlan(folder: folder.appending("copies").string)
            try await withThrowingTaskGroup { group in
                for store in stores { group.addTask { try await plan.makeIfDue(of: store) } }
                try await group.waitForAll()
            }
            let names = fileNames(in: plan.folder)
            #expect(names == ["worker-20270115T080000Z.db"])
            let copy = try JobStore(path: "\(plan.folder)/\(names.first ?? "")")
            #expect(try await copy.reports.backlog().queued == 500)
            try await copy.close()
            for store in stores { try await store.close() }
        }
    }
}
