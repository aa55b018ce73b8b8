import Synchronization
import TestSupport
import Testing

/// Changes of a job while its items wait in the downloader.
@Suite(.serialized, .timeLimit(.minutes(15))) struct OrderChangeTests {
    private static let patient = ["--allow-addresses", "loopback", "--silence-timeout", "5m", "--total-timeout", "5m"]

    /// One slot, held by the first URL; the jobs' other URLs wait in the downloader while `change` is made.
    private func requests(
        after change: (TestWorker) async throws -> Void, until jobs: [String],
    ) async throws -> [String] {
        let gate = Gate()
        let paths = Mutex<[String]>([])
        try await withWorker({ request in
            if request.path == "/0.png" { gate.wait() }
            return Pictures.reply(request)
        }) { w in
            try await w.run("init")
            _ = try w.start(["--concurrency", "1"] + Self.patient)
            try await w.enqueue(w.url("/0.png"), "--priority", "90")
            try await w.eventually("the first is in flight") { w.origin.requests.count == 1 }
            try await w.enqueue((1...4).map { w.url("/\($0).png") })
            try await w.enqueue((11...14).map { w.url("/\($0).png") })
            try await w.eventually("all are claimed") { try await w.value("SELECT sum(active) FROM jobs") == "9" }
            try await Task.sleep(for: .milliseconds(300))
            try await change(w)
            // Within a second, and some for a busy machine.
            try await Task.sleep(for: .milliseconds(1_500))
            gate.open()
            for job in jobs { try await w.untilEnded(job) }
            let asked = w.origin.requests.map(\.path)
            paths.withLock { $0 = asked }
        }
        return paths.withLock { $0 }
    }

    private static func paths(_ numbers: [Int]) -> [String] { numbers.map { "/\($0).png" } }

    @Test func aJobsNewPriorityMovesItsWaitingItems() async throws {
        let order = try await requests(
            after: { w in try await w.sql("UPDATE jobs SET priority = 50 WHERE id = 3") }, until: ["2", "3"])
        #expect(order == Self.paths([0, 11, 12, 13, 14, 1, 2, 3, 4]))
    }

    @Test func theReorderCommandMovesWaitingItems() async throws {
        let order = try await requests(
            after: { w in
                #expect(try await w.run("reorder", "3", "--priority", "50").output == "job 3: running, priority 50\n")
                try await w.run("reorder", "2", "--order", "lifo")
                #expect(try await w.run("reorder", "3", expecting: 64).errors.contains("--priority, --order"))
                #expect(try await w.run("reorder", "3", "--priority", "101", expecting: 64).errors.contains("100"))
                #expect(try await w.run("reorder", "3", "--order", "lofi", expecting: 64).errors.contains("lifo"))
                #expect(try await w.run("reorder", "9", "--order", "lifo", expecting: 64).errors.contains("no job 9"))
            }, until: ["2", "3"])
        #expect(order == Self.paths([0, 11, 12, 13, 14, 4, 3, 2, 1]))
    }

    /// The job gets another priority, and its items without a priority of their own move.
    @Test func anItemsOwnPriorityStaysWhenItsJobsChanges() async throws {
        let order = try await requests(
            after: { w in
                try await w.sql("INSERT INTO items (job, url, priority) VALUES (2, '\(w.url("/9.png"))', 80)")
                try await w.eventually("it is claimed") { try await w.value("SELECT sum(active) FROM jobs") == "10" }
                try await w.sql("UPDATE jobs SET priority = -50 WHERE id = 2")
            }, until: ["2", "3"])
        #expect(order == Self.paths([0, 9, 11, 12, 13, 14, 1, 2, 3, 4]))
    }

    /// Items get a priority of their own, another one, or lose it, while they wait in the downloader.
    @Test func anItemsNewPriorityMovesItAlone() async throws {
        let order = try await requests(
            after: { w in
                let priorities = [("2", "30"), ("13", "80"), ("3", "-5"), ("12", "10")]
                for (number, priority) in priorities {
                    try await w.sql("UPDATE items SET priority = \(priority) WHERE url LIKE '%/\(number).png'")
                }
                try await Task.sleep(for: .milliseconds(1_500))
                try await w.sql("UPDATE items SET priority = NULL WHERE url LIKE '%/12.png'")
            }, until: ["2", "3"])
        #expect(order == Self.paths([0, 13, 2, 1, 4, 11, 12, 14, 3]))
    }

    @Test func aJobsNewOrderReversesItsWaitingItems() async throws {
        let order = try await requests(
            after: { w in try await w.sql("UPDATE jobs SET execution_order = 'lifo' WHERE id = 2") },
            until: ["2", "3"])
        #expect(order.filter { ["/1.png", "/2.png", "/3.png", "/4.png"].contains($0) } == Self.paths([4, 3, 2, 1]))
    }

    @Test func aPauseReleasesWaitingItemsAndOtherJobsGoOn() async throws {
        let order = try await requests(
            after: { w in
                try await w.run("pause", "2")
                try await w.eventually("they are back in the queue") {
                    try await w.value("SELECT queued, active FROM jobs WHERE id = 2") == "4|0"
                }
            }, until: ["1", "3"])
        #expect(order == Self.paths([0, 11, 12, 13, 14]))
    }
}
