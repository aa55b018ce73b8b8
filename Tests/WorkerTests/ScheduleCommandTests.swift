import Glibc
import SystemPackage
import TestSupport
import Testing

/// `worker schedule` and `worker manifest check`, and the schedules that a running worker keeps.
@Suite(.timeLimit(.minutes(15))) struct ScheduleCommandTests {
    private struct Record: Decodable {
        struct Last: Decodable {
            let outcome: String?
            let job: Int?
            let message: String?
        }
        let name, cron, timeZone: String
        let paused: Bool
        let nextDue: Int64?
        let last: Last?
    }

    private func list(_ w: TestWorker) async throws -> [Record] {
        try await w.run("schedule", "list", "--json").json([Record].self)
    }

    private func manifest(_ w: TestWorker, _ name: String, _ more: String = "") throws -> String {
        try w.file(name, "urls: ['\(w.url("/1.png"))']\nvariants: thumb=16x12,webp\n\(more)")
    }

    /// Makes the schedule due now, as if its time had come.
    private func comes(_ name: String, _ w: TestWorker) async throws {
        try await w.sql(
            "UPDATE schedules SET next_due = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), starts_at = 1 WHERE name = '\(name)'"
        )
    }

    @Test func `A schedule is added, listed, paused, resumed and removed`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let file = try manifest(
                w, "shop.yaml", "schedule: {cron: '17 3 * * *', time-zone: Europe/Berlin, jitter: 5m}\n")
            let added = try await w.run("schedule", "add", file)
            #expect(
                added.output.hasPrefix("added shop; next run at ") && added.output.contains(" 03:17 +0"),
                "\(added.output)")
            let replaced = try await w.run("schedule", "add", file, "--cron", "@hourly", "--time-zone", "UTC")
            #expect(replaced.output.hasPrefix("replaced shop; next run at "))
            var records = try await list(w)
            #expect(records.map { [$0.name, $0.cron, $0.timeZone] } == [["shop", "0 * * * *", "UTC"]])
            try await w.run("schedule", "pause", "shop")
            records = try await list(w)
            #expect(records[0].paused && records[0].nextDue == nil)
            #expect(try await w.run("schedule", "list").output.contains("paused"))
            try await w.run("schedule", "resume", "shop")
            let unknown = try await w.run("schedule", "remove", "shp", "shop", expecting: 1)
            #expect(
                unknown.errors == "worker: There is no schedule 'shp'. Did you mean 'shop'? See: worker schedule list\n"
            )
            #expect(unknown.output == "removed shop\n")
            #expect(try await w.run("schedule", "list").output.hasPrefix("No schedules."))
        }
    }

    @Test func `A running worker enqueues a due run once, and records its outcome`() async throws {
        try await withWorker { w in
            try await w.run("init")
            try await w.run("schedule", "add", manifest(w, "shop.yaml"), "--cron", "17 3 * * *")
            // The two of them look at the same table.
            _ = try await w.startRegistered()
            _ = try await w.startRegistered()
            try await comes("shop", w)
            try await w.eventually("the run has a job") { try await list(w)[0].last?.job != nil }
            try await w.untilEnded("1")
            #expect(try await w.counts("1").hasPrefix("1|"))
            try await comes("shop", w)
            try await w.eventually("the next run has one, too") { try await list(w)[0].last?.job == 2 }
            try await w.untilEnded("2")
            #expect(try await w.value("SELECT count(*) FROM jobs") == "2")
            #expect(try await w.value("SELECT group_concat(outcome) FROM schedule_runs") == "enqueued,enqueued")
            #expect(try await list(w)[0].nextDue != nil)
            try await w.stopAll()
        }
    }

    @Test func `A drain begins with the due runs of schedules`() async throws {
        try await withWorker { w in
            try await w.run("init")
            try await w.run("schedule", "add", manifest(w, "shop.yaml"), "--cron", "17 3 * * *")
            try await comes("shop", w)
            try await w.drain()
            #expect(try await w.value("SELECT state || done FROM jobs") == "finished1")
        }
    }

    /// The worker's allowed addresses hold for lists as for items.
    @Test func `Lists of schedules are fetched under the worker's address guard`() async throws {
        try await withWorker({ request in
            request.path == "/list.txt"
                ? .ok(Array("http://\(request.header("host") ?? "")/1.png\n".utf8)) : Pictures.reply(request)
        }) { w in
            try await w.run("init")
            let file = try w.file("m.yaml", "sources: ['\(w.url("/list.txt"))']\nschedule: '@hourly'\n")
            try await w.run("schedule", "add", file)
            try await comes("m", w)
            try await w.run("run", "--drain")
            #expect(
                try await w.value("SELECT outcome || (message LIKE '%can''t be fetched%') FROM schedule_runs")
                    == "failed1")
            try await comes("m", w)
            try await w.drain()
            #expect(try await w.value("SELECT state || done FROM jobs") == "finished1")
        }
    }

    @Test func `List files of schedules are read from the folder of --lists only`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let urls = try w.file("lists/urls.txt", w.url("/1.png") + "\n")
            let secret = try w.file("secret.txt", w.url("/2.png") + "\n")
            let folder = String(urls.dropLast("/urls.txt".count))
            #expect(symlink(secret, folder + "/link.txt") == 0)
            for (name, file) in [("inside", urls), ("outside", secret), ("link", folder + "/link.txt")] {
                let told = try await w.run(
                    "schedule", "add", w.file("\(name).yaml", "sources: ['\(file)']\nschedule: '@hourly'\n"))
                #expect(told.errors.contains("start the worker with --lists and the folder of this list"))
                try await comes(name, w)
            }
            try await w.drain()
            #expect(
                try await w.rows("SELECT DISTINCT message LIKE '%started without --lists%' FROM schedule_runs") == ["1"]
            )
            for name in ["inside", "outside", "link"] { try await comes(name, w) }
            try await w.run("run", "--drain", "--allow-addresses", "loopback", "--lists", folder)
            #expect(
                try await w.rows(
                    "SELECT schedule, message LIKE '%is not in the folder%' FROM schedule_runs WHERE outcome = 'failed' AND message NOT LIKE '%started without%' ORDER BY 1"
                )
                    == ["link|1", "outside|1"])
            #expect(try await w.rows("SELECT name FROM jobs") == ["inside"])
        }
    }

    @Test func `A run can be started by hand unless the job of the last run is unfinished`() async throws {
        try await withWorker { w in
            try await w.run("init")
            try await w.run("schedule", "add", manifest(w, "shop.yaml"), "--cron", "@yearly")
            #expect(try await w.run("schedule", "run", "shop").output == "1\n")
            let again = try await w.run("schedule", "run", "shop")
            #expect(
                again.output == "1\n"
                    && again.errors.contains("Job 1 of an earlier run is unfinished; nothing was added."))
            // What warm calls the same batch is the same.
            let warm = try await w.run(["warm", manifest(w, "shop.yaml")] + TestWorker.quick)
            #expect(warm.output.hasPrefix("warm shop: job 1: 1 done"))
            try await w.run("schedule", "run", "nothing", expecting: 1)
        }
    }

    @Test(arguments: [
        ("", "does not say when it is due"),
        ("schedule: 61 * * * *", "m.yaml, line 3: '61' is no minute of a schedule"),
        (
            "schedule: {cron: '@daily', timezone: UTC}",
            "m.yaml, line 3: unknown key 'timezone'. Did you mean 'time-zone'?"
        ),
        (
            "schedule: {cron: '@daily', time-zone: Berlin}",
            "line 3: There is no time zone 'Berlin'. Did you mean 'Europe/Berlin'?"
        ),
        ("schedule: {cron: '@daily', missed: never}", "line 3: missed must be once or skip, not 'never'."),
        ("schedule: {time-zone: UTC}", "line 3: schedule needs cron, such as '17 3 * * *'."),
        ("schedule: {cron: '@daily', jitter: 5}", "line 3: jitter must be a time with a unit"),
        ("schedule: 0 0 30 2 *", "is never due"), ("schedule: ['@daily']", "line 3: this has to be keys with values"),
    ]) func `An invalid schedule is refused with its line`(_ text: String, _ words: String) async throws {
        try await withWorker { w in
            try await w.run("init")
            let refused = try await w.run("schedule", "add", manifest(w, "m.yaml", text + "\n"), expecting: 64)
            #expect(refused.errors.contains(words), "\(refused.errors)")
            #expect(try await w.value("SELECT count(*) FROM schedules") == "0")
        }
    }

    // MARK: - Manifests

    @Test func `A manifest has several lists, each with its own settings`() async throws {
        try await withWorker { w in
            try await w.run("init")
            _ = try w.file(
                "a/products.csv",
                "sku;page;image\n1;http://p.example/1;http://a.example/1.jpg\n2;http://p.example/2;http://b.example/2.jpg\n"
            )
            _ = try w.file("a/more.txt", "http://a.example/3.jpg\nhttp://a.example/4.jpg\nhttp://a.example/5.jpg\n")
            let file = try w.file(
                "a/m.yaml",
                """
                urls: [http://c.example/0.jpg]
                sources:
                  - {file: products.csv, column: image, host: a.example}
                  - file: more.txt
                    limit: 2
                  - more.txt
                variants:
                  - thumb=320x240,webp
                  - card=640x
                """)
            let checked = try await w.run("manifest", "check", file)
            #expect(checked.output == "\(file): 7 URLs, from 3 lists, variants thumb, card\n")
            #expect(
                try await w.run("manifest", "check", file, "--offline").output.contains(": 1 URL, 3 lists not read, "))
            try await w.run("enqueue", "--manifest", file)
            let names = try await w.rows("SELECT url FROM items ORDER BY id").map { $0.suffix(5).prefix(1) }
            #expect(names == ["0", "1", "3", "4", "3", "4", "5"])
        }
    }

    @Test func `The manifests in the folder jobs are valid`() async throws {
        try await withWorker { w in
            let names = ["avatars", "catalogue", "dataset", "front-page", "sitemap"]
            let paths = names.map { Guide.root.appending("jobs/\($0).yaml").string }
            let checked = try await w.run(["manifest", "check", "--offline"] + paths)
            #expect(checked.lines.count == names.count)
            #expect(checked.lines.allSatisfy { $0.contains(": 1 list not read, variants ") })
        }
    }

    @Test(arguments: [
        ("sources: list.txt", "m.yaml, line 1: sources must be a list of files and addresses, each behind a dash."),
        ("sources: [{file: a.csv, colum: x}]", "m.yaml, line 1: unknown key 'colum'. Did you mean 'column'?"),
        ("sources:\n  - {format: csv}", "m.yaml, line 2: a source is a file, a url, or a query with the database"),
        ("sources: [{query: SELECT 1}]", "a source is a file, a url, or a query with the database"),
        ("sources: [{file: a.csv, format: exel}]", "There is no format 'exel'."),
        ("sources: [{file: a.csv, sample: 200}]", "sample must be a number above 0 and up to 100, not '200'."),
        ("sources: [{file: a.csv, limit: none}]", "limit must be a whole number from 1 to 1000000000, not 'none'."),
        ("urls: [http://a.example/1.jpg]\nvariants: thumb=320x240,webpp", "did you mean webp?"),
        ("urls: [a.example/1.jpg]", "has no scheme"), ("name: x", "has neither urls nor sources"),
        ("sources: [nowhere.txt]", "nowhere.txt can't be read"), ("urls: [", "it is no YAML"),
        (
            "urls: [http://a.example/1.jpg]\nvariants:\n  - thumb=320x240,webp\n  - big=webpp",
            "m.yaml, line 4: variants: "
        ),
        ("urls: [http://a.example/1.jpg]\noptions:\n- retry-failed\n- retry-fialed", "m.yaml, line 4: options: "),
        ("sources:\n- {file: good.yaml, format: csv, column: imge}", "m.yaml, line 2: "),
    ]) func `A mistake in a manifest is refused with its line and the nearest key`(
        _ text: String, _ words: String,
    ) async throws {
        try await withWorker { w in
            let file = try w.file("m.yaml", text + "\n")
            let good = try manifest(w, "good.yaml")
            let refused = try await w.run("manifest", "check", file, good, expecting: 64)
            #expect(refused.errors.contains(words), "\(refused.errors)")
            #expect(refused.output.hasPrefix("\(good): 1 URL, variants thumb"))
        }
    }

    @Test func `Without its lists a manifest's own URLs are judged`() async throws {
        try await withWorker { w in
            let file = try w.file("m.yaml", "urls: [http://a.example/1.jpg, foo.jpg]\nsources: [nowhere.txt]\n")
            let refused = try await w.run("manifest", "check", "--offline", file, expecting: 64)
            #expect(refused.errors.contains("'foo.jpg'"), "\(refused.errors)")
        }
    }
}
