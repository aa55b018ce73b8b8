import Glibc
import TestSupport
import Testing

/// Many commands at the same time, and commands that are killed, on one database.
@Suite(.serialized, .timeLimit(.minutes(15))) struct ManyCommandsTests {
    private static let recount = """
        SELECT count(*) FROM jobs AS j WHERE
            (total, queued, active, delayed, done + cached, failed + blacklisted, cancelled) IS NOT
            (SELECT count(*), ifnull(sum(state = 'queued'), 0), ifnull(sum(state = 'active'), 0),
                ifnull(sum(state = 'delayed'), 0), ifnull(sum(state = 'done'), 0), ifnull(sum(state = 'failed'), 0),
                ifnull(sum(state = 'cancelled'), 0) FROM items WHERE job = j.id)
        """

    @Test func `Fifty concurrent enqueues of a thousand URLs add every URL`() async throws {
        try await withWorker { w in
            try await w.run("init")
            for number in 0..<50 {
                let urls = (0..<1_000).map { "http://a.example/\(number)/\($0).png\n" }.joined()
                _ = try w.file("list-\(number)", urls)
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<50 {
                    let list = w.place("list-\(number)")
                    group.addTask {
                        try await w.run("enqueue", "--file", list, "--wait", "5m", within: .seconds(300))
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await w.value("SELECT count(*), sum(total), sum(queued) FROM jobs") == "50|50000|50000")
            #expect(try await w.value("SELECT count(*), count(DISTINCT url) FROM items") == "50000|50000")
            #expect(try await w.value(Self.recount) == "0")
            #expect(try await w.value("PRAGMA integrity_check") == "ok")
        }
    }

    @Test func `Jobs that are paused, resumed, cancelled and retried in a loop beside two workers end as done`()
        async throws
    {
        try await withWorker({ .delayed(milliseconds: 20, then: Pictures.tiny($0)) }) { w in
            try await w.run("init")
            for job in 0..<4 {
                try await w.enqueue((0..<150).map { w.url("/\(job * 1_000 + $0).png") })
            }
            let workers = [try w.start(), try w.start()]
            for round in 0..<12 {
                for (command, job) in [("pause", 1), ("resume", 1), ("cancel", 2), ("retry", 2), ("pause", 3)] {
                    // A job that has ended meanwhile can't be paused or resumed, and says so with 64 or 65.
                    let told = try await w.run(command, "\(job)", expecting: nil)
                    #expect(told.exit != .code(70) && told.exit != .code(75), "\(round) \(command): \(told.errors)")
                    #expect(!told.errors.contains("Fatal"), "\(told.errors)")
                }
                try await w.run("resume", "3", expecting: nil)
            }
            try await w.run("retry", "2", expecting: nil)
            for job in 1...4 { try await w.untilEnded("\(job)", within: .seconds(120)) }
            for worker in workers {
                let errors = try w.errors(of: worker)
                #expect(worker.exit == nil, "\(errors)")
            }
            #expect(try await w.rows("SELECT DISTINCT state FROM items") == ["done"])
            #expect(try await w.value("SELECT sum(done + cached) FROM jobs") == "600")
            #expect(try await w.value(Self.recount) == "0")
        }
    }

    @Test
    func `An enqueue of a long list that is killed adds all of it or nothing, and the next worker removes the rest`()
        async throws
    {
        try await withWorker { w in
            try await w.run("init")
            let count = 60_000
            _ = try w.file("list", (0..<count).map { "http://a.example/\($0).png\n" }.joined())
            var kills = 0
            for round in 0..<8 {
                let files = ChildProcess.Files(output: w.place("enqueue.out"), errors: w.place("enqueue.err"))
                let child = try RunningProgram(
                    TestWorker.binary, ["enqueue", "--file", w.place("list"), "--db", w.database], files: files,
                    environment: ["PATH": "/usr/bin:/bin"])
                // From the first of its items on, later each time.
                let before = try await w.value("SELECT count(*) FROM jobs")
                try await w.eventually("it adds items") {
                    try await w.value(
                        "SELECT (SELECT count(*) FROM job_additions) + (SELECT count(*) FROM jobs) > \(before)") == "1"
                }
                try await Task.sleep(for: .milliseconds(20 * round))
                child.send(SIGKILL)
                if try await child.wait() == .signal(SIGKILL) { kills += 1 }
                #expect(try await w.value("SELECT count(*) FROM jobs WHERE total <> \(count)") == "0", "\(round)")
                #expect(try await w.value(Self.recount) == "0", "\(round)")
            }
            #expect(kills > 0)
            try await w.run("pause", "--all")
            // A list that was complete is not fetched: all jobs are paused.
            _ = try await w.startRegistered()
            try await w.eventually("the worker has removed the rest") {
                try await w.value("SELECT count(*) FROM job_additions") == "0"
            }
            #expect(try await w.value("SELECT count(*) FROM items WHERE job NOT IN (SELECT id FROM jobs)") == "0")
            #expect(
                try await w.value("SELECT (SELECT count(*) FROM items) = (SELECT coalesce(sum(total), 0) FROM jobs)")
                    == "1")
        }
    }

    @Test func `Jobs that a shell has cancelled are ended by a run, and removed by a prune`() async throws {
        let cancelled = """
            BEGIN;
            WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
            INSERT INTO jobs (name) SELECT 'job ' || i FROM n;
            INSERT INTO items (job, url) SELECT id, 'http://a.example/' || id FROM jobs;
            COMMIT;
            UPDATE jobs SET state = 'cancelled';
            """
        try await withWorker { w in
            try await w.run("init")
            try await w.sql(cancelled)
            try await w.drain()
            #expect(try await w.rows("SELECT DISTINCT state FROM items") == ["cancelled"])
        }
        try await withWorker { w in
            try await w.run("init")
            try await w.sql(cancelled)
            try await w.run("prune", "--older-than", "0s", "--yes")
            #expect(try await w.value("SELECT count(*) FROM jobs") == "0")
        }
    }

    @Test func `A prune that is killed fourteen times removes only ended jobs, and the next prune finishes`()
        async throws
    {
        try await withWorker { w in
            try await w.run("init")
            // A hundred jobs of a hundred items that have ended, and as many that have not.
            try await w.sql(
                """
                BEGIN;
                WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 200)
                INSERT INTO jobs (name) SELECT 'job ' || i FROM n;
                WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100)
                INSERT INTO items (job, url) SELECT jobs.id, 'http://a.example/' || jobs.id || '/' || i FROM jobs, n;
                COMMIT;
                UPDATE jobs SET state = 'cancelled' WHERE id <= 100;
                """)
            try await w.run("cancel", "100", expecting: nil)
            try await w.eventually("they have ended") {
                try await w.value("SELECT count(*) FROM items WHERE state = 'cancelled'") == "10000"
            }
            var kills = 0
            for round in 0..<14 {
                let files = ChildProcess.Files(output: w.place("prune.out"), errors: w.place("prune.err"))
                let child = try RunningProgram(
                    TestWorker.binary, ["prune", "--older-than", "0s", "--yes", "--db", w.database], files: files,
                    environment: ["PATH": "/usr/bin:/bin"])
                try await Task.sleep(for: .milliseconds(30 + 12 * round))
                child.send(SIGKILL)
                if try await child.wait() == .signal(SIGKILL) { kills += 1 }
                #expect(try await w.value("SELECT count(*) FROM items WHERE state = 'queued'") == "10000", "\(round)")
                #expect(try await w.value("SELECT count(*) FROM items WHERE job NOT IN (SELECT id FROM jobs)") == "0")
                #expect(try await w.value(Self.recount) == "0", "\(round)")
            }
            #expect(kills > 0)
            try await w.run("prune", "--older-than", "0s", "--yes")
            #expect(try await w.value("SELECT count(*), min(id) FROM jobs") == "100|101")
            #expect(try await w.value("SELECT count(*) FROM items") == "10000")
            #expect(try await w.value("PRAGMA integrity_check") == "ok")
        }
    }
}
