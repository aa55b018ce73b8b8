import Core
import Testing

@testable import Jobs

/// Notices of ended jobs: the jobs that have one, the worker that sends it, and its retries.
@Suite(.timeLimit(.minutes(15))) struct NoticeBookTests {
    private static let receiver = "https://hooks.example/a?token=1"

    /// Adds a job of one URL, and fails its item.
    private func endedJob(_ queue: Queue, notify: String? = receiver) async throws -> JobID {
        var job = NewJob(urls: ["https://a.example/1.jpg"])
        job.notify = notify
        let id = try #require(try await queue.store.queue.enqueue(job))
        for item in try await queue.claim() { try await queue.end(item, .failed(Failure(.notAnImage, "text"))) }
        return id
    }

    private func take(_ queue: Queue, commands: Bool = false) async throws -> JobNotice? {
        try await queue.store.notices.take(takesCommands: commands)
    }

    @Test func `A job that names a receiver has one notice when it has ended`() async throws {
        try await withQueue { (queue) async throws -> Void in
            _ = try await endedJob(queue, notify: nil)
            let job = try await endedJob(queue)
            let notice = try #require(try await take(queue))
            #expect((notice.job, notice.target, notice.attempts) == (job, .url(Self.receiver), 1))
            #expect(try await take(queue) == nil)
            try await queue.store.notices.sent(notice)
            #expect(try await queue.store.notices.notice(ofJob: job)?.state == .sent)
            queue.clock.advance(86_400_000)
            #expect(try await take(queue) == nil)
        }
    }

    @Test(arguments: ["UPDATE jobs SET state = 'cancelled'", "DELETE FROM items"])
    func `A job that SQL ends has a notice, too`(_ sql: String) async throws {
        try await withQueue { (queue) async throws -> Void in
            let answer = try queue.shell.run(
                """
                INSERT INTO jobs (urls, notify) VALUES (json_array('https://a.example/1.jpg'), 'http://hooks.example/');
                \(sql);
                """)
            #expect(answer.errors == "")
            #expect(try await take(queue)?.target == .url("http://hooks.example/"))
        }
    }

    @Test func `A failed notice is sent again after growing waits, and fails after ten tries`() async throws {
        try await withQueue { (queue) async throws -> Void in
            let job = try await endedJob(queue)
            var waits: [Int64] = []
            while let notice = try await take(queue) {
                let goesOn = try await queue.store.notices.failed(notice, "no answer", isFinal: false)
                guard goesOn else { break }
                let due = try #require(try await queue.store.notices.notice(ofJob: job)?.dueAt)
                waits.append((due - queue.clock.now) / 1_000)
                queue.clock.advance(due - queue.clock.now)
            }
            #expect(waits == [10, 30, 90, 270, 810, 2_430, 3_600, 3_600, 3_600])
            let record = try await queue.store.notices.notice(ofJob: job)
            #expect(record?.state == .failed && record?.attempts == 10 && record?.message == "no answer")
        }
    }

    @Test func `A receiver's Retry-After is kept, and a final refusal ends the notice`() async throws {
        try await withQueue { (queue) async throws -> Void in
            let job = try await endedJob(queue)
            let notice = try #require(try await take(queue))
            #expect(try await queue.store.notices.failed(notice, "503", isFinal: false, retryAfter: 60_000))
            #expect(try await queue.store.notices.notice(ofJob: job)?.dueAt == queue.clock.now + 60_000)
            queue.clock.advance(60_000)
            let second = try #require(try await take(queue))
            #expect(try await !queue.store.notices.failed(second, "410", isFinal: true))
            #expect(try await queue.store.notices.notice(ofJob: job)?.state == .failed)
        }
    }

    @Test(.onSQLite, arguments: ["'abc'", "x'ff'", "9e99", "-9223372036854775808", "9223372036854775807"])
    func `A notice with invalid numbers is still sent and ends`(_ value: String) async throws {
        try await withQueue { (queue) async throws -> Void in
            let job = try await endedJob(queue)
            #expect(try queue.shell.run("UPDATE notices SET attempts = \(value), ended_at = \(value)").errors == "")
            let notice = try #require(try await take(queue))
            try await queue.store.notices.sent(notice)
            #expect(try await queue.store.notices.notice(ofJob: job)?.state == .sent)
        }
    }

    @Test func `A dead sender's notice is taken again, and the late report of that sender changes nothing`()
        async throws
    {
        try await withQueue { (queue) async throws -> Void in
            let job = try await endedJob(queue)
            let first = try #require(try await take(queue))
            queue.clock.advance(NoticeBook.claimDuration)
            let second = try #require(try await take(queue))
            #expect(second.attempts == 2 && second.id == first.id)
            _ = try await queue.store.notices.failed(first, "late", isFinal: true)
            #expect(try await queue.store.notices.notice(ofJob: job)?.state == .waiting)
            try await queue.store.notices.release(second)
            #expect(try await take(queue)?.attempts == 2)
        }
    }

    @Test func `A job that ends again has another notice, and a deleted job has none`() async throws {
        try await withQueue { (queue) async throws -> Void in
            let job = try await endedJob(queue)
            let first = try #require(try await take(queue))
            try await queue.store.notices.sent(first)
            queue.clock.advance(1_000)
            #expect(try queue.shell.run("UPDATE items SET state = 'queued' WHERE job = \(job)").errors == "")
            #expect(try queue.shell.run("UPDATE items SET state = 'cancelled' WHERE job = \(job)").errors == "")
            queue.clock.advance(86_400_000 * 400)
            let second = try #require(try await take(queue))
            #expect(second.attempts == 1)
            #expect(try queue.shell.run("DELETE FROM jobs WHERE id = \(job)").errors == "")
            #expect(try await queue.store.notices.notice(ofJob: job) == nil)
        }
    }

    @Test func `A notice to a command waits for a worker that has a command`() async throws {
        try await withQueue { (queue) async throws -> Void in
            _ = try await endedJob(queue, notify: "command")
            #expect(try await take(queue) == nil)
            #expect(try await take(queue, commands: true)?.target == .command)
        }
    }

    @Test(
        .onSQLite,
        arguments: [
            "'x'", "'ftp://a.example/'", "'https://'", "''", "7", "x'00'", "'Command'", "printf('http://%.2048c', 'a')",
        ])
    func `An invalid receiver is refused with a sentence`(_ value: String) async throws {
        try await withQueue { (queue) async throws -> Void in
            let answer = try queue.shell.run("INSERT INTO jobs (urls, notify) VALUES ('[]', \(value))")
            #expect(answer.complaint.hasPrefix("notify must be an http or https URL, or 'command'"), "\(answer.errors)")
        }
    }
}
