import Core
import Jobs
import Testing

@Suite("Views", .timeLimit(.minutes(15)), .enabled(if: Shell.isThere, Shell.missing))
struct ViewTests {
    static let columns: [(view: String, columns: String)] = [
        (
            "progress",
            """
            job name state priority total ended percent queued active delayed done cached failed blacklisted cancelled \
            bytes finished_count skipped_count not_new created_at started_at finished_at error
            """
        ),
        (
            "results",
            """
            job item url state cached variant format width height size blob path class http_status message finished_at \
            dominant_colour blurhash thumbhash phash source_format source_width source_height frames has_alpha damage \
            scale meta served_url bytes_from
            """
        ),
        ("near_duplicates", "url near_url distance"),
        ("failures", "job item url class http_status message attempts blacklisted failed_at"),
        ("blacklist", "url host class http_status message count first_at last_at expires_at"),
        (
            "jobs",
            """
            id name urls variants options headers priority execution_order state total queued active delayed done cached \
            failed blacklisted cancelled bytes not_new created_at started_at finished_at error dedupe_key notify revision
            """
        ),
        (
            "items",
            """
            id job url state lease attempts run_at class http_status message cached blacklisted source bytes started_at \
            finished_at waits_for deaths meta priority variants headers sha256 size fallbacks fallback bytes_from
            """
        ),
        ("waiting", "job item url host reason class attempts until"),
        (
            "limits",
            """
            host concurrency per_host rate burst silence_timeout connect_timeout total_timeout max_tries retry_delay \
            cache_max_age
            """
        ),
    ]

    @Test(arguments: columns)
    func `Each view has the documented columns`(_ row: (view: String, columns: String)) async throws {
        try await withQueue { queue in
            let names = try queue.shell.expect(
                Queue.isOnPostgres
                    ? """
                    SELECT column_name FROM information_schema.columns
                        WHERE table_name = '\(row.view)' AND table_schema = current_schema() ORDER BY ordinal_position;
                    """ : "SELECT name FROM pragma_table_info('\(row.view)');")
            #expect(names.joined(separator: " ") == row.columns)
        }
    }

    @Test func `The counts of a job with one item of each ending add up`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(8)
            let items = try await queue.claim(6)
            try await queue.end(items[0], items[0].completion(clock: queue.clock))
            try await queue.end(items[1], items[1].completion(cached: true, clock: queue.clock))
            try await queue.end(items[2], .failed(.http(404)))
            try await queue.end(items[3], .blacklisted(try #require(try await queue.store.blacklist.entries().first)))
            try await queue.end(items[4], .wait(until: WallTime(milliseconds: 1)))
            let row = try queue.shell.expect(
                """
                SELECT total, ended, percent, queued, active, delayed, done, cached, failed, blacklisted, cancelled, bytes,
                    finished_count, skipped_count FROM progress;
                """)
            #expect(row == ["8|4|50.0|2|1|1|1|1|1|1|0|10|4|2"])
            try await queue.store.control.cancel(job: job)
            #expect(try queue.shell.expect("SELECT ended, percent, cancelled FROM progress;") == ["8|100.0|4"])
        }
    }

    @Test func `A result has its file, a failure has its reason, and both have a time`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(2)
            let items = try await queue.claim()
            try await queue.end(items[0], items[0].completion(clock: queue.clock))
            try await queue.end(items[1], .failed(.http(404)))
            let hash = ClaimedItem.hash(of: items[0].id)
            #expect(
                try queue.shell.expect("SELECT * FROM results ORDER BY item;") == [
                    "1|1|https://j.example/0.jpg|done|0|original|jpeg|4|3|10|\(hash)|blobs/sha256/00/\(hash)||||2027-01-15T08:00:00.000Z|||||jpeg|4|3||||1|||network",
                    "1|2|https://j.example/1.jpg|failed|0||||||||http-404|404|It went wrong.|2027-01-15T08:00:00.000Z|||||||||||1|||",
                ])
            #expect(
                try queue.shell.expect("SELECT * FROM failures;") == [
                    "1|2|https://j.example/1.jpg|http-404|404|It went wrong.|1|0|2027-01-15T08:00:00.000Z"
                ])
        }
    }

    @Test func `Results come in pages of whole items`() async throws {
        try await withQueue { queue in
            let job = try await queue.job(5)
            let items = try await queue.claim(4)
            for item in items.reversed() {
                guard case .done(let first) = item.completion(clock: queue.clock) else { continue }
                let small = RenditionRecord(
                    name: "small", blob: first.renditions[0].blob, size: 10, format: "webp", width: 2, height: 1)
                let both = Completion(
                    source: first.source, renditions: first.renditions + [small], newVariants: first.newVariants,
                    origin: first.origin)
                try await queue.end(item, .done(both))
            }
            var pages: [[Int64]] = []
            var last: Int64 = 0
            while true {
                let page = try await queue.store.reports.results(job: job, after: last, limit: 3)
                guard let end = page.last?.item else { break }
                last = end
                pages.append(page.map(\.item))
            }
            #expect(pages == [[1, 1, 2, 2, 3, 3], [4, 4]])
            #expect(try await queue.store.reports.results(job: job + 1, after: 0, limit: 3) == [])
        }
    }

    @Test func `A job's priority may be changed while it waits`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(1, name: "first")
            let second = try await queue.job(1, name: "second")
            try queue.shell.expect("UPDATE jobs SET priority = 9 WHERE id = \(second);")
            #expect(try await queue.claim(1).map(\.job) == [second])
        }
    }

    /// The name of a host, with a user before it, does not count.
    @Test(.enabled(if: Shell.isThere, Shell.missing)) func `The scale is read from any URL's path or query`()
        async throws
    {
        try await withTemporaryQueue { queue in
            let scales = [
                "box:a@2x.png": 2, "s3:bucket@3x.png": 3, "http://x.example?a@2x.png": 2,
                "http://x.example#b%403x.png": 3,
                "http://user@2x.example/a.png": 1, "http://user@3x.example": 1, "http://x.example/c@2x.png": 2,
            ]
            let list = scales.keys.map { "'\($0)'" }.joined(separator: ", ")
            try queue.shell.expect(
                """
                INSERT INTO jobs (urls) VALUES (json_array(\(list)));
                UPDATE items SET state = 'cancelled', finished_at = 1, class = 'cancelled', message = 'no' WHERE state = 'queued';
                """)
            let rows = try queue.shell.expect("SELECT url || ' ' || scale FROM results;")
            #expect(rows.sorted() == scales.map { "\($0.key) \($0.value)" }.sorted())
        }
    }
}
