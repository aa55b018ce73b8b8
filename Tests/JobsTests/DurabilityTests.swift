import SystemPackage
import TestSupport
import Testing

@testable import Jobs

/// Which commits are on the disk when they return.
@Suite("Durability of commits", .timeLimit(.minutes(15)), .onSQLite)
struct DurabilityTests {
    private static func level(_ db: Connection) throws -> Int? { try db.int("PRAGMA synchronous") }

    @Test func `A durable commit is synced, and a commit that may be lost is not`() async throws {
        try await withQueue { queue in
            let store = queue.store
            for (isDurable, level) in [(true, 2), (false, 1), (false, 1), (true, 2), (true, 2)] {
                #expect(try await store.database.write(isDurable: isDurable) { try Self.level($0) } == level)
            }
            _ = try await store.database.write(isDurable: false) { try Self.level($0) }
            #expect(try await store.database.writeSlice(.marking) { db, _ in (try Self.level(db), 1) } == 2)
            #expect(try await store.database.writeSlice(.eviction) { db, _ in (try Self.level(db), 1) } == 1)
            let isDone = try await store.database.writeIfFree { db in
                let level = try Self.level(db)
                #expect(level == 2)
            }
            #expect(isDone)
        }
    }

    @Test func `A failed transaction leaves the next commit synced`() async throws {
        try await withQueue { queue in
            await #expect(throws: JobsError.self) {
                _ = try await queue.store.database.write(isDurable: false) { db in
                    try db.script("SELECT * FROM nowhere")
                }
            }
            let level = try await queue.store.database.write { try Self.level($0) }
            #expect(level == 2)
        }
    }

    /// SQLite refuses to change the level within a transaction, which stands here for any such failure.
    @Test func `A refused change of the sync level throws, and the next write is synced`() async throws {
        try await withQueue { queue in
            let store = queue.store
            let refusals = try await store.database.write(isDurable: false) { db in
                var refusals = 0
                for _ in 0..<2 {
                    do { try store.database.sqlite!.setDurability(true, of: db) } catch { refusals += 1 }
                }
                return refusals
            }
            #expect(refusals == 2)
            #expect(try await store.database.write { try Self.level($0) } == 2)
        }
    }

    @Test func `A store without syncs syncs no commit`() async throws {
        try await withTemporaryDirectory { folder in
            let store = try JobStore(path: folder.appending("worker.db").string, syncs: false)
            #expect(try await store.database.write { try Self.level($0) } == 0)
            #expect(try await store.database.write(isDurable: false) { try Self.level($0) } == 0)
            try await store.close()
        }
    }
}
