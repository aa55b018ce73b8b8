import Glibc
import Jobs
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import PrefetchWorker

/// A worker without work looks rarely, and at once when a program writes to the database.
@Suite("The pace of polling", .timeLimit(.minutes(5))) struct PollingPaceTests {
    /// Calls `body` with a database that a store has open, and its path.
    private func withDatabase(_ body: (FilePath) async throws -> Void) async throws {
        try await withTemporaryDirectory { folder in
            let path = folder.appending("worker.db")
            let store = try JobStore(path: path.string)
            try await body(path)
            try await store.close()
        }
    }

    /// Another program adds a job.
    private func enqueue(_ path: FilePath) async throws {
        let other = try JobStore(path: path.string)
        _ = try await other.queue.enqueue(NewJob(urls: ["http://example.com/a"]))
        try await other.close()
    }

    @Test(arguments: [false, true])
    func `A write wakes all services, also through a link to the database`(_ isLinked: Bool) async throws {
        try await withDatabase { path in
            var name = path
            if isLinked {
                name = path.removingLastComponent().appending("link.db")
                try #require(symlink(path.string, name.string) == 0)
            }
            let wakeup = Wakeup()
            let pace = PollingPace(database: name.string, wakeup: wakeup)
            #expect(pace.beginRest() && pace.isResting)
            async let services: Void = withTaskGroup(of: Void.self) { group in
                for _ in 0..<3 { group.addTask { await pace.pause(.milliseconds(1), rest: .seconds(600)) } }
            }
            try await enqueue(path)
            await services
            // The claim loop is woken, too.
            await wakeup.wait()
            #expect(!pace.isResting)
            // And again: one change is told once for each rest.
            #expect(pace.beginRest())
            async let again: Void = pace.pause(.milliseconds(1), rest: .seconds(600))
            try await enqueue(path)
            await again
        }
    }

    @Test func `A rest without work ends by cancellation only`() async throws {
        try await withDatabase { path in
            let pace = PollingPace(database: path.string, wakeup: Wakeup())
            #expect(pace.beginRest())
            let hasEnded = Atomic(false)
            let service = Task {
                await pace.pause(.milliseconds(1), rest: .seconds(600))
                hasEnded.store(true, ordering: .relaxed)
            }
            try await Task.sleep(for: .milliseconds(200))
            #expect(!hasEnded.load(ordering: .relaxed) && pace.isResting)
            service.cancel()
            await service.value
        }
    }

    @Test func `Services don't rest if changes of the database can't be watched`() async throws {
        try await withTemporaryDirectory { folder in
            let pace = PollingPace(database: folder.appending("none.db").string, wakeup: Wakeup())
            #expect(!pace.beginRest() && !pace.isResting)
            await pace.pause(.milliseconds(1), rest: .seconds(600))
        }
    }

    @Test(.enabled(if: PostgresServer.isAvailable, Comment(rawValue: PostgresServer.missing)))
    func `A change of the queue in PostgreSQL wakes all services, and nothing else does`() async throws {
        let url = try await PostgresServer.running.value.newSchema()
        let store = try JobStore(path: url)
        let pace = PollingPace(database: url, wakeup: Wakeup())
        for round in 0..<3 {
            // It connects meanwhile.
            for _ in 0..<200 where !pace.beginRest() { try await Task.sleep(for: .milliseconds(20)) }
            #expect(pace.isResting)
            let hasEnded = Atomic(false)
            let service = Task {
                await pace.pause(.milliseconds(1), rest: .seconds(600))
                hasEnded.store(true, ordering: .relaxed)
            }
            // Heartbeats and the like are no changes of the queue.
            try await store.cache.setProperty("test", to: "\(round)")
            try await Task.sleep(for: .milliseconds(200))
            #expect(!hasEnded.load(ordering: .relaxed) && pace.isResting)
            _ = try await store.queue.enqueue(NewJob(urls: ["http://example.com/\(round)"]))
            await service.value
            #expect(!pace.isResting)
        }
        try await store.close()
    }

    @Test(.enabled(if: PostgresServer.isAvailable, Comment(rawValue: PostgresServer.missing)))
    func `A lost connection to PostgreSQL ends the rest`() async throws {
        let server = try await PostgresServer.running.value
        let url = try server.newSchema()
        try await JobStore(path: url).close()
        let relay = try Relay(to: server.port)
        defer { relay.stop() }
        let pace = PollingPace(
            database: url.replacing(":\(server.port)/", with: ":\(relay.port)/"), wakeup: Wakeup())
        for _ in 0..<200 where !pace.beginRest() { try await Task.sleep(for: .milliseconds(20)) }
        #expect(pace.isResting)
        async let service: Void = pace.pause(.milliseconds(1), rest: .seconds(600))
        relay.cut()
        await service
        #expect(!pace.isResting)
    }
}
