import Core
import Jobs
import Testing

@Suite("Events", .timeLimit(.minutes(15)))
struct EventTests {
    private func all(_ queue: Queue, after last: Int64 = 0, job: JobID? = nil) async throws -> [JobEvent] {
        var found: [JobEvent] = []
        for try await event in queue.store.events.events(after: last, job: job, follows: false) { found.append(event) }
        return found
    }

    private static func text(_ event: JobEvent) -> String {
        let words = [event.event.rawValue, "\(event.job)", event.item.map(String.init), event.state, event.failure]
        return words.compactMap { $0 }.joined(separator: " ")
    }

    @Test func `A group's items and its job have one event each, in the order in which they ended`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(3)
            let items = try await queue.claim(3)
            _ = try await queue.store.queue.finish([
                (items[0], .failed(Failure(.http(404), "gone"))), (items[1], .release),
                (items[2], .failed(Failure(.badImage, "broken"))),
            ])
            let again = try await queue.claim(1)[0]
            try await queue.end(again, .failed(Failure(.dns, "unknown")))
            let events = try await all(queue)
            let expected: [String] = [
                "job \(job) queued", "job \(job) running", "item \(job) \(items[0].id) failed http-404",
                "item \(job) \(items[2].id) failed bad-image", "item \(job) \(again.id) failed dns",
                "job \(job) finished",
            ]
            let seen = events.filter { $0.event != .progress }.map(Self.text)
            #expect(seen == expected)
            #expect(events.first { $0.item == items[0].id }?.url == items[0].url)
            let progress = try #require(events.last)
            #expect(progress.event == .progress)
            #expect((progress.finished, progress.skipped, progress.total) == (3, 3, 3))
        }
    }

    /// Wherever a reader stops, going on after the last id it has seen brings the rest, and nothing twice.
    @Test func `A reader that resumes after any event sees each later event exactly once`() async throws {
        try await withQueue { queue in
            let first = try await queue.job(700)
            let second = try await queue.job(5, name: "k")
            while case let items = try await queue.claim(200), !items.isEmpty {
                _ = try await queue.store.queue.finish(items.map { ($0, .failed(Failure(.http(410), "gone"))) })
            }
            let events = try await all(queue).filter { $0.event != .progress }
            #expect(events.count == 705 + 6 && Set(events.map(\.id)).count == events.count)
            #expect(events.map(\.id) == events.map(\.id).sorted())
            for place in [0, 1, 2, 100, 255, 256, 257, 500, 709, 710] {
                let rest = try await all(queue, after: events[place].id).filter { $0.event != .progress }
                #expect(rest == Array(events[(place + 1)...]), "after event \(place)")
            }
            let own = try await all(queue, job: second).filter { $0.event != .progress }
            #expect(own == events.filter { $0.job == second })
            #expect(try await queue.store.events.last() == events.last?.id)
            _ = first
        }
    }

    @Test(.timeLimit(.minutes(1))) func `A reader of a job's events ends with the job, from whichever event it begins`()
        async throws
    {
        try await withQueue { queue in
            let job = try await queue.job(1)
            let item = try await queue.claim(1)[0]
            try await queue.end(item, .failed(Failure(.http(410), "gone")))
            let events = try await all(queue, job: job).filter { $0.event != .progress }
            for last in [0, events[1].id, try #require(events.last).id, .max] {
                var found: [JobEvent] = []
                for try await event in queue.store.events.events(after: last, job: job) where event.event != .progress {
                    found.append(event)
                }
                #expect(found == events.filter { $0.id > last })
            }
            // It was retried, and is not over by the event of its first end. More rows lie between than a page has.
            for _ in 0..<20 { try await queue.store.control.cancel(job: try await queue.job(1)) }
            _ = try await queue.store.control.retry(job: job)
            let again = try await queue.claim(1)[0]
            try await queue.end(again, .failed(Failure(.dns, "unknown")))
            var states: [String] = []
            for try await event in queue.store.events.events(job: job) where event.event == .job {
                states.append(event.state ?? "")
            }
            #expect(states.filter { $0 == "finished" }.count == 2 && states.last == "finished", "\(states)")
        }
    }

    @Test(.onSQLite) func `An event with an id out of range is refused`() async throws {
        try await withQueue { queue in
            for id in ["9223372036854775807", "-1", "4503599627370496", "7"] {
                let refused = try queue.shell.run("INSERT INTO event_log (id, at, detail) VALUES (\(id), 0, '[]');")
                #expect(refused.complaint.contains("the id of an event is left to the database"), "\(refused)")
            }
            _ = try await queue.job(1)
            #expect(try await all(queue).isEmpty == false)
        }
    }

    @Test func `Items that SQL ends have events, and so has each item of a job that is cancelled as a whole`()
        async throws
    {
        try await withQueue { queue in
            let job = try await queue.job(3)
            try queue.shell.expect(
                """
                UPDATE items SET state = 'cancelled', finished_at = 1, class = 'cancelled', message = 'no'
                WHERE id = (SELECT min(id) FROM items);
                """)
            let count = try await queue.store.control.cancel(job: job, urls: ["https://j.example/1.jpg"])
            #expect(count == 1)
            try await queue.store.control.cancel(job: job)
            let rows = try queue.shell.expect("SELECT event, state, class FROM events ORDER BY id;")
            #expect(
                rows == [
                    "job|queued|", "item|cancelled|cancelled", "item|cancelled|cancelled", "job|cancelled|",
                    "item|cancelled|cancelled",
                ])
        }
    }

    /// More items than a row of the log has events, in every open state, some with priorities of their own.
    @Test(.onSQLite, .enabled(if: Shell.isThere, Shell.missing), arguments: [false, true])
    func `Each item of a large job that is cancelled has one event, and a reader of the job waits for all`(
        _ hasTrigger: Bool,
    ) async throws {
        try await withTemporaryQueue { queue in
            let job = try await queue.job(2_500)
            try queue.shell.expect("UPDATE items SET priority = 5 WHERE id % 7 = 0;")
            let claimed = try await queue.claim(3)
            try await queue.end(
                claimed[0], .retry(at: queue.clock.now + 60_000, Failure(.dns, "unknown"), blockingHost: false))
            if hasTrigger {
                try queue.shell.expect(
                    "CREATE TABLE seen (item); CREATE TRIGGER mine AFTER UPDATE ON items BEGIN INSERT INTO seen VALUES (NEW.id); END;"
                )
            }
            try queue.shell.expect("UPDATE jobs SET state = 'cancelled' WHERE id = \(job);")
            async let found = {
                var items: [Int64] = []
                for try await event in queue.store.events.events(job: job) where event.event == .item {
                    #expect(event.state == "cancelled" && event.failure == "cancelled" && event.url != nil)
                    items.append(try #require(event.item))
                }
                return items
            }()
            try await Task.sleep(for: .milliseconds(20))
            #expect(try await queue.store.control.sweepCancelled() == 2_500)
            let all = try queue.shell.expect("SELECT id FROM items ORDER BY id;").compactMap { Int64($0) }
            #expect(try await found.sorted() == all)
            #expect(try await queue.store.maintenance.inconsistencies() == [])
        }
    }

    @Test func `An item without a URL has an event, whether inserted with its job or later`() async throws {
        try await withQueue { queue in
            try queue.shell.expect(
                """
                INSERT INTO jobs (urls) VALUES (json_array('', 'https://a.example/1.jpg'));
                INSERT INTO items (job, url) VALUES (1, NULL);
                """)
            let rows = try queue.shell.expect("SELECT event, item, state, class FROM events ORDER BY id;")
            #expect(rows == ["job||queued|", "item|1|failed|invalid-url", "item|3|failed|invalid-url"])
        }
    }

    @Test func `A sequence of events waits for new events, and ends with its job`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(1)
            let other = try await queue.job(1, name: "k")
            let reader = Task { () async throws -> [String] in
                var seen: [String] = []
                for try await event in queue.store.events.events(job: job) where event.event != .progress {
                    seen.append(Self.text(event))
                }
                return seen
            }
            try await Task.sleep(for: .milliseconds(300))
            for item in try await queue.claim(2) { try await queue.end(item, .failed(Failure(.http(404), "gone"))) }
            let seen = try await reader.value
            #expect(seen.count == 4 && seen.last == "job \(job) finished", "\(seen)")
            #expect(try await queue.progress(other).state == .finished)
        }
    }

    @Test func `A cancelled reader gets no more events`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(1)
            let reader = Task { () async throws -> Int in
                var count = 0
                for try await _ in queue.store.events.events() { count += 1 }
                return count
            }
            try await Task.sleep(for: .milliseconds(300))
            reader.cancel()
            #expect(try await reader.value == 2)
        }
    }

    @Test func `Pruned events are gone, and their ids are never used again`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(2)
            let before = try await queue.store.events.last()
            try await queue.store.events.prune(before: .max)
            #expect(try await all(queue).isEmpty)
            for item in try await queue.claim(2) { try await queue.end(item, .failed(Failure(.http(404), "gone"))) }
            let events = try await all(queue, after: before)
            #expect(events.count { $0.event == .item } == 2 && events.allSatisfy { $0.id > before && $0.job == job })
            #expect(try await queue.store.events.last(before: queue.clock.now + 1) > before)
            #expect(try await queue.store.events.last(before: WallTime(milliseconds: 0)) <= events[0].id)
        }
    }
}
