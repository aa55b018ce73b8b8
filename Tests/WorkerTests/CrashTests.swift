import Glibc
import TestSupport
import Testing

/// After kills of workers and helpers no item is lost or done twice, and no process or file is left.
@Suite(.serialized, .timeLimit(.minutes(15))) struct CrashTests {
    /// Two workers on one database; 50 times one of them is killed and another takes its place.
    @Test func fiftyKillsOfWorkersLoseNoItem() async throws {
        try await withWorker({ .delayed(milliseconds: 60, then: Pictures.tiny($0)) }) { w in
            try await w.run("init")
            try await countEnds(w)
            var workers = [try w.start(), try w.start()]
            var batches = 0
            var killed = 0
            while killed < 50 {
                if try await (Int(w.value("SELECT ifnull(sum(queued), 0) FROM jobs")) ?? 0) < 300 {
                    try await add(300, batch: batches, to: w)
                    batches += 1
                }
                try await Task.sleep(for: .milliseconds(Int.random(in: 100...700)))
                let victim = Int.random(in: 0...1)
                workers[victim].send(SIGKILL)
                #expect(try await workers[victim].wait() == .signal(SIGKILL))
                killed += 1
                workers[victim] = try w.start()
            }
            for job in 1...batches { try await w.untilEnded("\(job)", within: .seconds(60)) }
            try await everyItemEndedOnce(w, count: 300 * batches)
            #expect(workers.allSatisfy { $0.exit == nil })
        }
    }

    /// A trigger of the test's own: how often each item has ended.
    private func countEnds(_ w: TestWorker) async throws {
        try await w.sql(
            """
            CREATE TABLE ends (item INTEGER);
            CREATE TRIGGER count_ends AFTER UPDATE OF state ON items WHEN NEW.state IN ('done', 'failed', 'cancelled')
            BEGIN INSERT INTO ends VALUES (NEW.id); END
            """)
    }

    private func add(_ count: Int, batch: Int, to w: TestWorker) async throws {
        try await w.sql(
            """
            WITH RECURSIVE numbers (n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM numbers WHERE n < \(count - 1))
            INSERT INTO jobs (variants, urls) SELECT 'thumb=8x6,png',
                json_group_array('\(w.url("/"))' || (n + \(count * batch)) || '.png') FROM numbers
            """)
    }

    private func everyItemEndedOnce(_ w: TestWorker, count: Int) async throws {
        #expect(try await w.rows("SELECT state, count(*) FROM items GROUP BY state") == ["done|\(count)"])
        #expect(try await w.value("SELECT count(*), count(DISTINCT item) FROM ends") == "\(count)|\(count)")
        // A kill from outside does not count as a try of the image.
        #expect(try await w.value("SELECT min(attempts), max(attempts) FROM items") == "1|1")
        #expect(
            try await w.value("SELECT sum(done), sum(total), sum(active + queued + delayed) FROM jobs")
                == "\(count)|\(count)|0")
        #expect(try await w.value("SELECT count(*), count(DISTINCT blob) FROM results") == "\(2 * count)|\(2 * count)")
    }

    /// A worker that is killed takes its helpers with it, in the middle of an image too.
    @Test func noHelperOutlivesItsWorker() async throws {
        try await withWorker(script: ["/slow": [.ok(TestImages.png(160, 120))]]) { w in
            try await w.enqueue(w.url("/slow"), "--variant", "big=3000x3000,fill,enlarge,avif")
            let child = try w.start("--transforms", "2")
            try await w.eventually("a helper is at work") { !ProcessTable.children(of: child.pid).isEmpty }
            try await Task.sleep(for: .milliseconds(200))
            child.send(SIGKILL)
            #expect(try await child.wait() == .signal(SIGKILL))
            try await w.eventually("its helpers are gone", within: .seconds(1)) { w.processes.isEmpty }
            #expect(try await w.value("SELECT state, attempts FROM items") == "active|0")
        }
    }

    /// The crash may have been a `kill` from outside, so the image gets another helper.
    @Test func anImageSurvivesOneKillOfItsHelper() async throws {
        try await withSlowImage { w, child in
            _ = try await killHelper(of: child, but: [], w)
            for job in ["1", "2"] { try await w.untilEnded(job, within: .seconds(60)) }
            #expect(try await w.counts("1") == "1|0|0|0|0")
            #expect(try await w.counts("2") == "5|0|0|0|0")
            #expect(w.origin.requestCount("/slow") == 1)
        }
    }

    /// The image can be decoded, so its variants are at fault, and not its URL.
    @Test func anImageWhoseVariantsEndTwoHelpersFails() async throws {
        try await withSlowImage { w, child in
            let first = try await killHelper(of: child, but: [], w)
            _ = try await killHelper(of: child, but: [first], w)
            for job in ["1", "2"] { try await w.untilEnded(job, within: .seconds(60)) }
            #expect(try await w.value("SELECT class, attempts FROM failures") == "transform|1")
            #expect(try await w.value("SELECT count(*) FROM blacklist") == "0")
            #expect(try await w.counts("2") == "5|0|0|0|0")
        }
    }

    /// One image that takes seconds in the only helper, and five that wait behind it.
    private func withSlowImage(_ body: (TestWorker, RunningProgram) async throws -> Void) async throws {
        try await withWorker(script: ["/slow": [.ok(TestImages.png(160, 120))]]) { w in
            try await w.enqueue(w.url("/slow"), "--variant", "big=2600x2600,fill,enlarge,avif,effort:6")
            let child = try w.start("--transforms", "1")
            try await w.eventually("a helper is at work") { !ProcessTable.children(of: child.pid).isEmpty }
            try await w.enqueue((0..<5).map { w.url("/\($0).png") }, "--variant", "thumb=8x6")
            try await body(w, child)
            #expect(child.exit == nil)
        }
    }

    private func killHelper(of child: RunningProgram, but known: [pid_t], _ w: TestWorker) async throws -> pid_t {
        var found: [pid_t] = []
        try await w.eventually("a helper is at work") {
            // More than its start takes: it has the image.
            found = ProcessTable.children(of: child.pid).filter {
                !known.contains($0) && (ProcessTable.processorTime(of: $0) ?? 0) > 1_000
            }
            return !found.isEmpty
        }
        let helper = try #require(found.first)
        kill(helper, SIGKILL)
        return helper
    }

    /// The kernel tells at once that a worker is dead; its lease has a minute to run.
    @Test func leasesOfADeadWorkerAreReclaimedAtOnce() async throws {
        try await withWorker(script: ["/a": [.silence, .ok(Pictures.png(1))]]) { w in
            try await w.enqueue(w.url("/a"))
            let first = try w.start()
            try await w.eventually("the origin was asked") { w.origin.requests.count == 1 }
            let second = try await w.startRegistered()
            #expect(try await w.value("SELECT state, attempts FROM items") == "active|0")
            let clock = ContinuousClock()
            let killed = clock.now
            first.send(SIGKILL)
            try await w.untilEnded("1")
            #expect(clock.now - killed < .milliseconds(2_500))
            #expect(try await w.value("SELECT state, attempts FROM items") == "done|1")
            #expect(try await w.rows("SELECT pid FROM workers") == ["\(second.pid)"])
        }
    }
}
