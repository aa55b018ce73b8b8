import Core
import GRDB
import Synchronization
import Testing

@testable import Jobs

@Suite("Query plans", .timeLimit(.minutes(15)), .onSQLite)
struct QueryPlanTests {
    private final class Statements: Sendable {
        let all = Mutex<[String]>([])
    }

    /// The statements that `body` ran on the store, as they were prepared.
    private func statements(
        of store: JobStore, _ body: () async throws -> Void
    ) async throws -> [String] {
        let seen = Statements()
        try await store.database.read { db in
            try #require(db.sqlite).trace(options: .statement) { event in
                if case .statement(let statement) = event { seen.all.withLock { $0.append(statement.sql) } }
            }
        }
        try await body()
        try await store.database.read { try #require($0.sqlite).trace(options: .statement) }
        return seen.all.withLock { $0 }
    }

    private func plan(of sql: String, in store: JobStore) async throws -> [String] {
        try await store.database.read { db in
            let statement = try #require(db.sqlite).makeStatement(sql: "EXPLAIN QUERY PLAN " + sql)
            let nothing = StatementArguments(
                Array(repeating: nil as (any DatabaseValueConvertible)?, count: sql.count { $0 == "?" }))
            return try Row.fetchAll(statement, arguments: nothing).map { $0["detail"] }
        }
    }

    @Test func `A claim finds its items by the index of queued items, in order`() async throws {
        try await withQueue { queue in
            for order in ExecutionOrder.allCases {
                _ = try await queue.job(3, order: order)
                let ran = try await statements(of: queue.store) { _ = try await queue.claim() }
                let select = try #require(ran.first { $0.hasPrefix("SELECT id, url, attempts, deaths, coalesce(") })
                #expect(
                    try await plan(of: select, in: queue.store) == ["SEARCH items USING INDEX items_queued (job=?)"])
                let update = try #require(ran.first { $0.hasPrefix("UPDATE items SET state = 'active'") })
                #expect(try await plan(of: update, in: queue.store) == Self.byRow)
            }
        }
    }

    private static let byRow = ["SEARCH items USING INTEGER PRIMARY KEY (rowid=?)"]

    @Test func `Every ending finds its item by the row, never by the lease`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(4)
            let items = try await queue.claim()
            let failure = Failure(.timeout, "It took too long.")
            let endings: [ItemEnding] = [
                items[0].completion(clock: queue.clock), .failed(failure),
                .retry(at: queue.clock.now, failure, blockingHost: false), .release,
            ]
            let ran = try await statements(of: queue.store) {
                try await queue.store.queue.finish(Array(zip(items, endings)).map { (item: $0, ending: $1) })
            }
            let updates = ran.filter { $0.hasPrefix("UPDATE items") }
            #expect(updates.count == 4)
            for update in updates { #expect(try await plan(of: update, in: queue.store) == Self.byRow) }
        }
    }

    /// How the items that are queued again are found, and then changed.
    private func planOfQueuing(_ ran: [String], in store: JobStore) async throws -> [String] {
        let select = try #require(ran.first { $0.hasPrefix("SELECT id FROM items WHERE") })
        let update = try #require(ran.first { $0.hasPrefix("UPDATE items") })
        let changes = try await plan(of: update, in: store)
        #expect(changes.contains { Self.byRow.contains($0) }, "\(changes)")
        return try await plan(of: select, in: store) + changes
    }

    @Test func `Due items are found by the index of delayed items`() async throws {
        try await withQueue { queue in
            _ = try await queue.job()
            let item = try #require(try await queue.claim().first)
            try await queue.end(item, .wait(until: queue.clock.now))
            let ran = try await statements(of: queue.store) {
                let count = try await queue.store.queue.promoteDue()
                #expect(count == 1)
            }
            let plan = try await planOfQueuing(ran, in: queue.store)
            #expect(plan.contains { $0.contains("INDEX items_delayed (run_at<?)") })
            #expect(!plan.contains { $0.contains("SCAN items") })
        }
    }

    @Test func `A dead worker's items are found by the index of leases`() async throws {
        try await withQueue { queue in
            _ = try await queue.job()
            _ = try await queue.claim()
            let ran = try await statements(of: queue.store) {
                try await queue.store.workers.unregister(worker: queue.worker)
            }
            let plan = try await planOfQueuing(ran, in: queue.store)
            #expect(plan.contains { $0.contains("INDEX items_leased (lease=?)") })
            #expect(!plan.contains { $0.contains("SCAN items") })
        }
    }
}
