import FoundationEssentials
import Glibc
import SystemPackage
import TestSupport
import Testing

/// Items with columns of their own, as people insert them.
@Suite(.timeLimit(.minutes(15))) struct OwnColumnTests {
    /// Adds items to a new job; each row is the values of these columns.
    private func insert(_ w: TestWorker, _ columns: String, _ rows: [String]) async throws {
        try await w.run("init")
        try await w.sql(
            """
            INSERT INTO jobs (name, variants, headers) VALUES ('own', 'v=8x,png', '{"X-Job":"1","X-Both":"job"}');
            INSERT INTO items (job, \(columns)) VALUES \(rows.map { "(1, \($0))" }.joined(separator: ", "));
            """)
    }

    @Test func anItemsVariantsAndHeadersReplaceTheJobs() async throws {
        try await withWorker { w in
            try await insert(
                w, "url, variants, headers",
                [
                    "'\(w.url("/1.png"))', NULL, NULL",
                    "'\(w.url("/2.png"))', 'w=4x,png x=6x,png', '{\"x-both\":\"item\",\"X-Item\":\"2\"}'",
                    "'\(w.url("/3.png"))', 'w=nonsense', NULL", "'\(w.url("/4.png"))', NULL, '{\"Host\\n\":\"x\"}'",
                ])
            try await w.drain(expecting: 2)
            #expect(
                try await w.rows("SELECT item, variant FROM results WHERE variant <> 'original' ORDER BY 1, 2")
                    == ["1|v", "2|w", "2|x"])
            #expect(
                try await w.rows("SELECT item, class FROM failures ORDER BY 1") == ["3|invalid-item", "4|invalid-item"])
            let request = try #require(w.origin.requests.first { $0.path == "/2.png" })
            #expect(["X-Job", "X-Both", "X-Item"].map { request.header($0) } == ["1", "item", "2"])
            #expect(w.origin.requests.first { $0.path == "/1.png" }?.header("X-Both") == "job")
            #expect(w.origin.requestCount("/3.png") == 0)
            #expect(try await w.value("SELECT count(*) FROM blacklist") == "0")
        }
    }

    private struct Result: Decodable {
        struct Meta: Decodable { let sku: Int; let tags: [String] }
        let meta: Meta?
    }

    @Test func resultsHaveTheItemsMeta() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"), w.url("/no"), "--meta", "{\"sku\": 7,\n \"tags\":[\"a\"]}")
            try await w.enqueue(w.url("/2.png"))
            try await w.drain(expecting: 2)
            let rows = try await w.run("results", "1", "--format", "jsonl").jsonLines(Result.self)
            #expect(rows.map { $0.meta?.sku } == [7, 7])
            #expect(rows.map { $0.meta?.tags } == [["a"], ["a"]])
            #expect(
                try await w.run("results", "2", "--format", "jsonl").jsonLines(Result.self).map { $0.meta == nil } == [
                    true
                ])
            #expect(try await w.value("SELECT DISTINCT meta ->> 'sku' FROM results WHERE job = 1") == "7")
            let csv = try await w.run("results", "1", "--format", "csv").lines
            #expect(csv[0].hasSuffix(",meta,bytes_from"))
            #expect(csv[1].hasSuffix(#","{""sku"":7,""tags"":[""a""]}",network"#))
            let refused = try await w.run("enqueue", w.url("/3.png"), "--meta", "[7]", expecting: nil)
            #expect(refused.exit != .code(0))
            #expect(refused.errors.contains("meta must be a JSON object"))
        }
    }

    @Test func eventsHaveTheItemsMeta() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"), w.url("/no"), "--meta", "{\"sku\": 7,\n \"tags\":[\"a\"]}")
            try await w.enqueue(w.url("/2.png"))
            try await w.drain(expecting: 2)
            let lines = try await w.run("events", "--no-follow").lines.filter { $0.contains(#""event":"item""#) }
            #expect(lines.count { $0.hasSuffix(#","meta":{"sku":7,"tags":["a"]}}"#) } == 2, "\(lines)")
            #expect(lines.count { !$0.contains("meta") } == 1)
            #expect(
                try await w.rows("SELECT meta ->> 'sku', count(*) FROM events WHERE event = 'item' GROUP BY job")
                    == ["7|2", "|1"])
        }
    }

    @Test func aDelegateProgramGetsTheItemsMeta() async throws {
        try await withWorker { w in
            let path = try w.file(
                "delegate",
                "#!/bin/sh\nread -r line\necho \"$line\" >> '\(w.place("questions"))'\necho '{\"allow\":true}'\n")
            guard chmod(path, 0o700) == 0 else { throw Errno(rawValue: errno) }
            try await w.enqueue(w.url("/1.png"), "--meta", #"{"sku":7}"#)
            try await w.enqueue(w.url("/2.png"))
            try await w.drain("--delegate-command", "\(path):allow")
            let questions = try w.text(of: w.place("questions")).split(separator: "\n").map(String.init).sorted()
            #expect(questions.count == 2)
            #expect(questions[0].hasSuffix(#","meta":{"sku":7}}"#))
            #expect(!questions[1].contains("meta"))
        }
    }

    @Test func aBodyMustMatchTheItemsHash() async throws {
        let picture = Pictures.png(1)
        try await withWorker { w in
            let hash = try await w.sha256(picture)
            let url = "'\(w.url("/1.png"))'"
            try await insert(
                w, "url, sha256, size",
                [
                    "\(url), '\(hash.uppercased())', \(picture.count)",
                    "\(url), '\(String(repeating: "0", count: 64))', NULL", "\(url), NULL, 7", "\(url), NULL, 1000000",
                ])
            try await w.drain(expecting: 2)
            #expect(try await w.rows("SELECT state FROM items ORDER BY id") == ["done", "failed", "failed", "failed"])
            let failures = try await w.rows("SELECT class, attempts, message FROM failures ORDER BY item")
            #expect(failures.allSatisfy { $0.hasPrefix("checksum|1|") })
            #expect(failures[0].contains(hash) && failures[0].contains("000000"))
            #expect(failures[1].contains("\(picture.count)") && failures[1].contains("7"))
            #expect(try await w.value("SELECT count(*) FROM blacklist") == "0")
        }
    }

    @Test func aCachedPictureThatDoesNotMatchIsFetchedAnew() async throws {
        let new = Pictures.png(2)
        try await withWorker(script: ["/1.png": [.ok(Pictures.png(1)), .ok(new)]]) { w in
            try await w.enqueue(w.url("/1.png"))
            try await w.drain()
            try await w.sql(
                """
                INSERT INTO jobs (name) VALUES ('new');
                INSERT INTO items (job, url, sha256) VALUES (2, '\(w.url("/1.png"))', '\(try await w.sha256(new))');
                """)
            try await w.drain()
            #expect(try await w.counts("2") == "1|0|0|0|0")
            #expect(try w.bytes(of: try await w.path(w.url("/1.png"))) == new)
        }
    }
}

extension TestWorker {
    fileprivate func sha256(_ bytes: [UInt8]) async throws -> String {
        let path = place("bytes")
        try write(bytes, to: path)
        return String(try await run([path], program: "sha256sum").output.prefix(64))
    }
}
