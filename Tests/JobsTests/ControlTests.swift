import Core
import Jobs
import Testing

@Suite("Control of jobs", .timeLimit(.minutes(15)))
struct ControlTests {
    @Test func `Cancelling a job of fifty thousand items ends every item, and retry queues all of them`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(50_000)
            _ = try await queue.claim(100)
            try await queue.store.control.cancel(job: job)
            let cancelled = try await queue.progress(job)
            #expect((cancelled.state, cancelled.cancelled, cancelled.ended) == (.cancelled, 50_000, 50_000))
            #expect(try await queue.store.reports.backlog().isEmpty)
            #expect(try await queue.store.control.retry(job: job) == 50_000)
            let again = try await queue.progress(job)
            #expect((again.state, again.queued, again.finishedAt) == (.queued, 50_000, nil))
        }
    }

    @Test func `A sweep ends the queued, active and delayed items of a cancelled job, and of no other job`()
        async throws
    {
        try await withQueue { queue in
            let job = try await queue.job(5_000)
            let other = try await queue.job(10)
            let items = try await queue.claim(20)
            for item in items.prefix(5) {
                try await queue.end(
                    item, .retry(at: queue.clock.now + 60_000, Failure(.timeout, "slow"), blockingHost: false))
            }
            try queue.shell.expect("UPDATE jobs SET state = 'cancelled' WHERE id = \(job);")
            #expect(try await queue.store.control.sweepCancelled() == 5_000)
            let progress = try await queue.progress(job)
            #expect((progress.cancelled, progress.active, progress.delayed, progress.queued) == (5_000, 0, 0, 0))
            #expect(try await queue.progress(other).queued == 10)
        }
    }

    @Test func `Jobs that a shell cancels have an end time, are swept many in a slice, and are pruned`() async throws {
        try await withQueue { queue in
            try queue.shell.expect(
                """
                WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
                INSERT INTO jobs (urls) SELECT json_array('http://a.example/' || i, 'http://b.example/' || i) FROM n;
                UPDATE jobs SET state = 'cancelled';
                """)
            let open = try queue.shell.expect("SELECT count(*) FROM jobs WHERE finished_at IS NULL;")
            #expect(open == ["0"])
            #expect(try await queue.store.control.sweepCancelled() == 4_000)
            #expect(try queue.shell.expect("SELECT sum(cancelled), sum(queued) FROM jobs;") == ["4000|0"])
            let pruned = try await queue.store.maintenance.prune(endedBefore: queue.clock.steady + 10_000_000_000_000)
            #expect((pruned.jobs, pruned.items) == (2_000, 4_000))
        }
    }

    @Test func `A job that can't be run fails, with the reason on the job and on its items`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(2)
            let other = try await queue.job(1)
            _ = try await queue.claim(1)
            try await queue.store.control.fail(job: job, error: "The variant 'x' can't be parsed.")
            let progress = try await queue.progress(job)
            #expect(
                (progress.state, progress.error, progress.cancelled) == (.failed, "The variant 'x' can't be parsed.", 2)
            )
            let results = try await queue.store.reports.results(job: job, after: 0, limit: 10)
            #expect(Set(results.map(\.message)) == ["The variant 'x' can't be parsed."])
            #expect(try await queue.progress(other).state == .queued)
        }
    }

    @Test func `Single items are cancelled by URL and host, and the job goes on with the others`() async throws {
        try await withQueue { queue in
            let urls = ["http://a.example/1", "http://a.example/2", "http://b.example/1", "http://b.example/2"]
            let job = try #require(try await queue.store.queue.enqueue(NewJob(urls: urls)))
            let other = try #require(try await queue.store.queue.enqueue(NewJob(urls: urls)))
            let claimed = try await queue.claim(1)
            let store = queue.store
            #expect(try await store.control.cancel(job: job, urls: [urls[0], "http://c.example/"]) == 1)
            // Its result is ignored.
            let late = claimed.map { (item: $0, ending: $0.completion(clock: queue.clock)) }
            #expect(try await store.queue.finish(late) == Set(claimed.map(\.id)))
            #expect(try await store.control.cancel(job: job, urls: [urls[0], urls[1]], .init(host: "b.example")) == 0)
            #expect(try await store.control.cancel(job: job, urls: [], .init(host: "B.example")) == 2)
            let progress = try await queue.progress(job)
            #expect((progress.state, progress.cancelled, progress.queued) == (.running, 3, 1))
            #expect(try await store.control.cancel(job: job, urls: [urls[1]], .init(host: "a.example")) == 1)
            let ended = try await queue.progress(job)
            #expect((ended.state, ended.cancelled, ended.ended) == (.finished, 4, 4))
            #expect(try await store.control.cancel(job: job, urls: [], .init(host: "a.example")) == 0)
            #expect(try await queue.progress(other).queued == 4)
            #expect(try await store.control.retry(job: job) == 4)
        }
    }

    @Test func `Retry queues failed items with no tries used, and leaves done items`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(3)
            let items = try await queue.claim()
            try await queue.end(items[0], items[0].completion(clock: queue.clock))
            try await queue.end(items[1], .failed(.http(404)))
            try await queue.end(items[2], .failed(.denied))
            #expect(try await queue.store.control.retry(job: job) == 2)
            let progress = try await queue.progress(job)
            #expect((progress.state, progress.done, progress.queued, progress.failed) == (.queued, 1, 2, 0))
            #expect(try await queue.claim().map(\.attempts) == [0, 0])
            #expect(try await queue.store.control.retry(job: job) == 0)
        }
    }

    @Test func `A paused job whose last items end is finished, and can't be resumed`() async throws {
        try await withQueue { queue in
            let job = try await queue.job()
            let item = try #require(try await queue.claim().first)
            try await queue.store.control.pause(job: job)
            try await queue.end(item, item.completion(clock: queue.clock))
            #expect(try await queue.progress(job).state == .finished)
            let error = await #expect(throws: JobsError.self) { try await queue.store.control.resume(job: job) }
            #expect(error?.message == "Job \(job) is already finished.")
        }
    }

    @Test func `Pausing, resuming or cancelling a job a second time changes nothing`() async throws {
        try await withQueue { queue in
            let job = try await queue.job()
            for _ in 0..<2 { try await queue.store.control.pause(job: job) }
            for _ in 0..<2 { try await queue.store.control.resume(job: job) }
            for _ in 0..<2 { try await queue.store.control.cancel(job: job) }
            #expect(try await queue.progress(job).state == .cancelled)
        }
    }

    @Test func `An unknown job is not found`() async throws {
        try await withQueue { queue in
            let store = queue.store
            let actions: [@Sendable () async throws -> Void] = [
                { try await store.control.cancel(job: 9) }, { try await store.control.pause(job: 9) },
                { try await store.control.resume(job: 9) }, { _ = try await store.control.retry(job: 9) },
            ]
            for action in actions {
                let error = await #expect(throws: JobsError.self) { try await action() }
                #expect(error?.code == .notFound)
                #expect(error?.message == "There is no job 9. List the jobs with: worker status")
            }
            let none = try await store.reports.progress(job: 9)
            #expect(none == nil)
        }
    }

    @Test func `A second job with the same dedupe key is not added while the first is unfinished`() async throws {
        try await withQueue { queue in
            let new = NewJob(urls: ["https://a.example/a.jpg"], dedupeKey: "daily")
            let first = try #require(try await queue.store.queue.enqueue(new))
            #expect(try await queue.store.queue.enqueue(new) == nil)
            #expect(try await queue.store.queue.unfinishedJob(withDedupeKey: "daily") == first)
            try await queue.store.control.cancel(job: first)
            #expect(try await queue.store.queue.enqueue(new) != nil)
        }
    }

    @Test func `A job that breaks the schema or the options is refused, and no job is added`() async throws {
        try await withQueue { queue in
            let wrong = [
                NewJob(urls: ["https://a.example/a.jpg"], priority: 101), NewJob(urls: [""]),
                NewJob(urls: ["https://a.example/a.jpg"], options: "fast"),
                NewJob(urls: ["https://a.example/a.jpg"], options: "keep-original discard-original"),
            ]
            for job in wrong {
                let error = await #expect(throws: JobsError.self) { try await queue.store.queue.enqueue(job) }
                #expect(error?.code == .refused)
            }
            let jobs = try await queue.store.reports.progress()
            #expect(jobs == [])
        }
    }

    @Test func `Unfinished jobs are listed however old they are`() async throws {
        try await withQueue { queue in
            let paused = try await queue.job(), open = try await queue.job()
            try await queue.store.control.pause(job: paused)
            for _ in 0..<3 { _ = try await queue.store.queue.enqueue(NewJob(urls: [])) }
            #expect(try await queue.store.reports.progress(latest: 2).map(\.job) == [open + 3, open + 2, open, paused])
        }
    }
}
