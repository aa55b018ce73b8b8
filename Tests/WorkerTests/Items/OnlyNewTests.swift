import TestSupport
import Testing

/// Feeds that are enqueued whole each time.
@Suite(.timeLimit(.minutes(15))) struct OnlyNewTests {
    @Test func aFeedWithOnlyNewFetchesOnlyNewURLs() async throws {
        try await withWorker { w in
            let feed = [w.url("/1.png"), w.url("/2.png"), w.url("/no")]
            try await w.enqueue(feed, "--option", "only-new")
            try await w.drain(expecting: 2)
            #expect(try await w.counts("1") == "2|0|1|0|0")
            // What failed isn't done, and is asked for again, as the blacklist lets it.
            let second = try await w.run(["enqueue"] + feed + [w.url("/3.png"), "--option", "only-new retry-failed"])
            #expect(second.errors.contains("2 URLs were done by earlier jobs"))
            try await w.drain(expecting: 2)
            #expect(try await w.counts("2") == "1|0|1|0|0")
            #expect(try await w.value("SELECT total, not_new FROM progress WHERE job = 2") == "2|2")
            #expect(w.origin.requestCount("/1.png") == 1)
            #expect(try await w.run("status", "2").output.contains("left out by only-new 2"))
        }
    }

    @Test func aJobOfKnownURLsIsFinishedAtOnce() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"))
            try await w.drain()
            try await w.sql(
                """
                INSERT INTO jobs (urls, options) VALUES (json_array('\(w.url("/1.png"))'), 'only-new');
                INSERT INTO jobs (name, options) VALUES ('feed', 'refresh-cached, only-new');
                INSERT INTO items (job, url) SELECT 3, value FROM json_each(json_array('\(w.url("/1.png"))', '\(w.url("/1.png"))'));
                INSERT INTO jobs (urls, options) VALUES (json_array('\(w.url("/1.png"))'), 'refresh-cached');
                """)
            #expect(
                try await w.rows("SELECT job, state, total, not_new FROM progress WHERE job > 1 ORDER BY job")
                    == ["2|finished|0|1", "3|finished|0|2", "4|queued|1|0"])
            // A row that is new opens it again.
            try await w.sql("INSERT INTO items (job, url) VALUES (3, '\(w.url("/2.png"))')")
            #expect(try await w.state("3") == "queued")
            try await w.drain()
        }
    }

    /// The first job with the option notes the URLs of all done items, and later items note theirs when they are done.
    @Test func aURLIsKnownAsLongAsAnItemWithItIsDone() async throws {
        try await withWorker { w in
            func known(_ path: String) async throws -> Bool {
                try await w.sql(
                    """
                    INSERT INTO jobs (id, name, options) VALUES (99, 'feed', 'only-new');
                    INSERT INTO items (job, url) VALUES (99, '\(w.url(path))');
                    """)
                let leftOut = try await w.value("SELECT not_new FROM jobs WHERE id = 99")
                try await w.sql("DELETE FROM jobs WHERE id = 99")
                return leftOut == "1"
            }
            try await w.enqueue(w.url("/1.png"))
            try await w.drain()
            #expect(
                try await w.value("SELECT count(*) FROM done_urls") == "0",
                "no URL is noted without a job with only-new")
            #expect(try await known("/1.png"))
            #expect(try await !known("/2.png"))

            try await w.enqueue(w.url("/1.png"))
            try await w.sql(
                """
                INSERT INTO jobs (name) VALUES ('with a fallback');
                INSERT INTO items (job, url, fallbacks) VALUES
                    (last_insert_rowid(), '\(w.url("/no"))', json_array('\(w.url("/2.png"))'));
                """)
            try await w.drain()
            #expect(try await known("/no"), "the enqueued URL counts, not its fallback")
            #expect(try await !known("/2.png"))

            try await w.sql("DELETE FROM jobs WHERE id = (SELECT min(id) FROM jobs)")
            #expect(try await known("/1.png"), "another job has done the URL")
            try await w.sql("DELETE FROM jobs WHERE id = (SELECT min(id) FROM jobs)")
            #expect(try await !known("/1.png"))
            #expect(try await w.value("SELECT group_concat(item) FROM done_urls WHERE url <> ''") == "3")
        }
    }
}
