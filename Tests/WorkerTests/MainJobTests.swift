import Glibc
import TestSupport
import Testing

/// The usual way: enqueue, run, read the results, and read files from the cache.
@Suite(.serialized, .timeLimit(.minutes(15))) struct MainJobTests {
    private static let formats: [String: [UInt8]] = [
        "/photo.tif": TestImages.tiff(120, 80),
        "/picture.png": TestImages.png(160, 120),
        "/alpha.png": TestImages.png(60, 90, kind: .rgba),
        "/grey.png": TestImages.png(90, 60, kind: .grey),
        "/deep.png": TestImages.png(40, 40, kind: .rgba16),
        "/palette.png": TestImages.png(50, 50, kind: .indexedWithAlpha),
        "/still.gif": TestImages.gif(40, 30),
        "/moving.gif": TestImages.gif(40, 30, frames: [10, 120, 230]),
        "/tall.png": TestImages.png(10, 200),
        "/wide.png": TestImages.png(200, 10),
        "/dot.png": TestImages.png(1, 1),
    ]

    @Test func aJobOfTwelveImagesMakesTwoVariantsOfEach() async throws {
        let jpeg = try await Pictures.jpeg()
        let files = Self.formats.merging(["/photo.jpg": jpeg]) { $1 }
        try await withWorker({ files[$0.path].map { .ok($0) } ?? .status(404) }) { w in
            let urls = files.keys.sorted().map(w.url)
            let job = try await w.enqueue(
                urls, "--variant", "thumb=32x32,cover,enlarge,png", "--variant", "card=64x,webp")
            let summary = try await w.drain()
            #expect(summary.output.hasPrefix("12 done, 0 cached, 0 failed"))
            #expect(try await w.counts(job) == "12|0|0|0|0")
            #expect(try await w.state(job) == "finished")
            #expect(
                try await w.value("SELECT count(*) FROM results WHERE variant = 'thumb' AND width = 32 AND height = 32")
                    == "12")
            #expect(
                try await w.value("SELECT count(*) FROM results WHERE variant = 'card' AND format = 'webp'") == "12")
            for path in files.keys {
                let bytes = try w.bytes(of: try await w.path(w.url(path)))
                #expect(bytes == files[path], "\(path)")
            }
        }
    }

    /// The same from five kinds of input, while a worker is running.
    @Test func aRunningWorkerTakesJobsFromEveryKindOfInput() async throws {
        try await withWorker { w in
            try await w.run("init")
            _ = try await w.startRegistered()
            let list = try w.file("list.txt", "# mine\n\(w.url("/1.png"))\n\n  \(w.url("/2.png"))  \r\n")
            let yaml = try w.file(
                "job.yaml",
                """
                name: from yaml
                urls: [\(w.url("/5.png"))]
                file: list.txt
                variants: [thumb=16x16, "card=32x,webp"]
                options: retry-failed
                priority: 7
                order: lifo
                """)
            let json = try w.file(
                "job.json", #"{"name":"from json","urls":["\#(w.url("/6.png"))"],"variants":"thumb=8x8","priority":-3}"#
            )
            let jobs = [
                try await w.enqueue(w.url("/0.png")),
                try await w.enqueue("-f", list),
                try await w.run("enqueue", "-f", "-", input: "\(w.url("/3.png"))\n\(w.url("/4.png"))").line,
                try await w.enqueue("--manifest", yaml),
                try await w.enqueue("--manifest", json),
            ]
            #expect(jobs == ["1", "2", "3", "4", "5"])
            for job in jobs { try await w.untilEnded(job) }
            #expect(
                try await w.rows("SELECT name, total, priority, execution_order, done + cached FROM jobs") == [
                    "|1|0||1", "|2|0||2", "|2|0||2", "from yaml|3|7|lifo|3", "from json|1|-3||1",
                ])
            #expect(try await w.value("SELECT count(*) FROM results WHERE job = 4 AND variant = 'card'") == "3")
        }
    }

    /// The three statements that the documentation shows.
    @Test func aRunningWorkerTakesJobsThatSQLInserts() async throws {
        try await withWorker { w in
            try await w.run("init")
            _ = try await w.startRegistered()
            try await w.sql("INSERT INTO jobs (urls) VALUES (json_array('\(w.url("/1.png"))', '\(w.url("/2.png"))'))")
            try await w.sql(
                """
                INSERT INTO jobs (name, urls, variants, options, priority)
                VALUES ('catalogue', json_array('\(w.url("/3.png"))'), 'thumb=32x24,cover,webp,q80', 'retry-failed', 10)
                """)
            try await w.sql(
                """
                CREATE TABLE products (image_url TEXT);
                INSERT INTO products VALUES ('\(w.url("/4.png"))'), ('\(w.url("/5.png"))'), ('\(w.url("/1.png"))');
                BEGIN;
                INSERT INTO jobs (name, variants) VALUES ('feed', 'card=20x,webp');
                INSERT INTO items (job, url) SELECT (SELECT last_insert_rowid()), image_url FROM products;
                COMMIT;
                """)
            for job in ["1", "2", "3"] { try await w.untilEnded(job) }
            #expect(
                try await w.rows("SELECT job, state, total, ended, percent FROM progress ORDER BY job") == [
                    "1|finished|2|2|100.0", "2|finished|1|1|100.0", "3|finished|3|3|100.0",
                ])
            #expect(
                try await w.value("SELECT format, width, height FROM results WHERE variant = 'thumb'") == "webp|32|24")
            #expect(try await w.value("SELECT count(*) FROM results WHERE variant = 'card' AND width = 20") == "3")
            #expect(try await w.value("SELECT count(*) FROM failures") == "0")
        }
    }

    @Test func theStatementRefusesInvalidRows() async throws {
        let refusals = [
            ("INSERT INTO jobs (urls) VALUES ('https://a/b')", "urls must be a JSON array of strings"),
            (
                "INSERT INTO jobs (urls, priority) VALUES ('[]', 101)",
                "priority must be a whole number from -100 to 100"
            ),
            (
                "INSERT INTO jobs (urls, execution_order) VALUES ('[]', 'random')",
                "execution_order must be 'fifo' or 'lifo'"
            ),
            ("INSERT INTO jobs (urls, headers) VALUES ('[]', '[]')", "headers must be a JSON object of strings"),
            ("INSERT INTO items (job, url) VALUES (99, 'https://a/b')", "no open job has this id"),
        ]
        try await withWorker { w in
            try await w.run("init")
            for (statement, reason) in refusals {
                let refused = try await w.sql(statement, expecting: nil)
                #expect(refused.exit != .code(0))
                #expect(refused.errors.contains(reason), "\(refused.errors)")
            }
            #expect(try await w.value("SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM items)") == "0")
        }
    }

    /// SDWebImage's prefetcher skips invalid URLs, too.
    @Test func anInvalidURLFailsAlone() async throws {
        try await withWorker { w in
            try await w.run("init")
            try await w.sql(
                "INSERT INTO jobs (urls) VALUES (json_array('\(w.url("/1.png"))', '', 'nonsense', NULL, 'ftp://x/y'))")
            try await w.drain(expecting: 2)
            #expect(try await w.counts("1") == "1|0|4|0|0")
            #expect(
                try await w.rows("SELECT DISTINCT state, class FROM results WHERE url = ''") == ["failed|invalid-url"])
            #expect(try await w.value("SELECT count(*) FROM failures WHERE class = 'invalid-url'") == "4")
            #expect(try await w.value("SELECT count(*) FROM blacklist") == "0")
            #expect(try await w.run("results", "1").output.contains("The item has no URL."))
            #expect(try await w.run("enqueue", "", expecting: nil).exit != .code(0))
        }
    }

    @Test func aSecondRunMakesNoRequestAndNoFile() async throws {
        try await withWorker { w in
            let urls = (0..<12).map { w.url("/\($0).png") }
            let variants = ["--variant", "thumb=20x20,cover,webp", "--variant", "card=40x"]
            try await w.run(["enqueue"] + urls + variants)
            try await w.drain()
            let before = try fingerprint(w)
            #expect(before.count == 12 * 3)
            let asked = w.origin.requests.count
            let made = try await w.value("SELECT count(*), max(created_at) FROM variants")
            try await w.run(["enqueue"] + urls + variants)
            let summary = try await w.drain()
            #expect(summary.output.hasPrefix("0 done, 12 cached, 0 failed"))
            #expect(try await w.counts("2") == "0|12|0|0|0")
            #expect(asked == 12)
            #expect(w.origin.requests.count == asked)
            #expect(try await w.value("SELECT count(*), max(created_at) FROM variants") == made)
            #expect(try fingerprint(w) == before)
        }
    }

    /// Path, inode and time of each blob.
    private func fingerprint(_ w: TestWorker) throws -> [String] {
        w.blobs.map { path in
            var info = stat()
            stat("\(w.cache)/blobs/sha256/\(path)", &info)
            return "\(path) \(info.st_ino) \(info.st_mtim.tv_sec).\(info.st_mtim.tv_nsec)"
        }
    }

    @Test func aNewVariantOfACachedSourceNeedsNoNetwork() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"), "--variant", "a=20x")
            try await w.drain()
            let original = try await w.path(w.url("/1.png"))
            let before = try fingerprint(original)
            try await w.enqueue(w.url("/1.png"), "--variant", "b=10x,webp")
            try await w.drain()
            // Not written anew, nor replaced by one that is the same.
            #expect(try fingerprint(original) == before)
            #expect(w.origin.requests.count == 1)
            #expect(try await w.path(w.url("/1.png")) == original)
            #expect(try await w.value("SELECT format, width FROM results WHERE variant = 'b'") == "webp|10")
        }
    }

    /// Which file it is, how long, and when it was last written to.
    private func fingerprint(_ path: String) throws -> [Int] {
        var status = stat()
        try #require(stat(path, &status) == 0)
        return [Int(status.st_ino), Int(status.st_size), status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
    }

    @Test func anEmptyJobIsFinishedAtOnce() async throws {
        try await withWorker { w in
            try await w.run("init")
            try await w.sql("INSERT INTO jobs (urls) VALUES ('[]')")
            #expect(try await w.value("SELECT state, total, percent FROM progress") == "finished|0|100.0")
            try await w.drain()
        }
    }
}
