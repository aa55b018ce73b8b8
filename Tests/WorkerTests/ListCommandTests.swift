import Glibc
import TestSupport
import Testing

/// `worker enqueue` with lists: their sources, their selection, and the messages.
@Suite(.timeLimit(.minutes(15))) struct ListCommandTests {
    private static let csv = """
        sku,image
        7,http://a.example/1.jpg
        8,http://b.example/2.jpg
        9,http://a.example/3.png

        """

    @Test func `Other columns of a list become the meta of the results`() async throws {
        try await withWorker { w in
            let list = try w.file("list.csv", "sku,image\n7,\(w.url("/1.png"))\n8,\(w.url("/2.png"))\n")
            let run = try await w.run("enqueue", "-f", list, "--meta", #"{"feed":"shop","sku":0}"#)
            #expect(run.errors == "worker: \(list): read as CSV: 2 URLs\n")
            try await w.drain()
            let lines = try await w.run("results", run.line, "--columns", "meta", "--format", "csv").lines
            #expect(
                lines.dropFirst().sorted()
                    == [7, 8].map { "\"{\"\"sku\"\":\"\"\($0)\"\",\"\"feed\"\":\"\"shop\"\"}\"" })
        }
    }

    @Test(arguments: [
        (["--limit", "2"], ["1.jpg", "2.jpg"]), (["--host", "A.example"], ["1.jpg", "3.png"]),
        (["--match", "*.jpg"], ["1.jpg", "2.jpg"]), (["--match", "*.png", "--match", "*/2.*"], ["2.jpg", "3.png"]),
        (["--sample", "100"], ["1.jpg", "2.jpg", "3.png"]), (["--host", "a.example", "--limit", "1"], ["1.jpg"]),
    ]) func `A part of a list is selected`(_ arguments: [String], _ names: [String]) async throws {
        try await withWorker { w in
            try await w.run("init")
            try await w.run(["enqueue", "-f", try w.file("list.csv", Self.csv)] + arguments)
            let urls = try await w.rows("SELECT url FROM items ORDER BY id")
            #expect(urls.map { String($0.split(separator: "/").last ?? "") } == names)
        }
    }

    @Test func `A selection without URLs is refused and enqueues nothing`() async throws {
        try await withWorker { w in
            let none = try await w.run(
                "enqueue", "-f", try w.file("l.csv", Self.csv), "--host", "c.example", expecting: 64)
            #expect(none.errors.contains("No URL is left: --host, --match or --sample left out all 3."))
            #expect(access(w.database, F_OK) != 0)
        }
    }

    @Test func `Invalid lines are counted and listed, or skipped with --skip-invalid`() async throws {
        try await withWorker { w in
            let lines = (1...30).map { $0 % 2 == 0 ? "http://a.example/\($0).jpg" : "a.example/\($0).jpg" }
            let list = try w.file("list.txt", lines.joined(separator: "\n"))
            let refused = try await w.run("enqueue", "-f", list, expecting: 64)
            #expect(refused.errors.contains("line 19: 'a.example/19.jpg' has no scheme."))
            #expect(refused.errors.contains("At least 11 URLs are wrong, and nothing was enqueued."))
            #expect(access(w.database, F_OK) != 0)
            try await w.run("init")
            let skipped = try await w.run("enqueue", "-f", list, "--skip-invalid")
            #expect(skipped.errors.contains("line 29: 'a.example/29.jpg'"))
            #expect(skipped.errors.contains("15 URLs were left out as invalid."))
            #expect(try await w.value("SELECT total FROM jobs") == "15")
            let mixed = try await w.run("enqueue", "a.jpg", "http://a.example/1.jpg", "--skip-invalid", "--json")
            #expect(mixed.line == #"{"job":2,"urls":1}"#)
        }
    }

    @Test func `Standard input, a manifest's file and several lists are read alike`() async throws {
        try await withWorker { w in
            try await w.run("init")
            try await w.run("enqueue", "-f", "-", input: "{\"url\":\"http://a.example/1.jpg\"}\n")
            let manifest = try w.file("m.yaml", "file: list.csv\nvariants: a=8x8\n")
            _ = try w.file("list.csv", Self.csv)
            try await w.run("enqueue", "--manifest", manifest)
            try await w.run(
                "enqueue", "-f", w.place("list.csv"), "-f", try w.file("more.txt", "http://a.example/4.jpg\n"),
                "http://a.example/5.jpg")
            #expect(try await w.rows("SELECT job, count(*) FROM items GROUP BY job") == ["1|1", "2|3", "3|5"])
        }
    }

    @Test func `A query reads URLs from another database`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let shop = w.place("shop.db")
            try await w.run(
                [
                    "-batch", shop,
                    "CREATE TABLE p (sku INTEGER, image TEXT, price REAL, note); INSERT INTO p VALUES (7, 'http://a.example/1.jpg', 1.5, NULL), (8, 'x', 2, x'00')",
                ],
                program: "sqlite3")
            let query = "SELECT sku, image AS url, price, note FROM p"
            let refused = try await w.run("enqueue", "--query", query, "--from", shop, expecting: 64)
            #expect(refused.errors.contains("row 2 of the query: 'x' is no URL."))
            try await w.run("enqueue", "--query", query, "--from", shop, "--skip-invalid")
            #expect(
                try await w.rows("SELECT url, meta FROM items") == [#"http://a.example/1.jpg|{"sku":7,"price":1.5}"#])
            let wrong = try await w.run("enqueue", "--query", "SELECT nope FROM p", "--from", shop, expecting: 64)
            #expect(wrong.errors.contains("The query can't be run on \(shop): no such column: nope."))
            let none = try await w.run("enqueue", "--query", query, "--from", w.place("none.db"), expecting: 64)
            #expect(none.errors.contains("can't be read: No such file or directory"))
            let write = try await w.run("enqueue", "--query", "DELETE FROM p", "--from", shop, expecting: 64)
            #expect(write.errors.contains("The query can't be run"))
        }
    }

    // MARK: - By address

    @Sendable private static func site(_ request: LoopbackOrigin.Request) -> LoopbackReply {
        let origin = "http://\(request.header("Host") ?? "")"
        func sitemap(_ urls: [String]) -> LoopbackReply {
            .ok(Array("<urlset>\(urls.map { "<url><loc>\($0)</loc></url>" }.joined())</urlset>".utf8), type: "text/xml")
        }
        switch request.path {
        case "/index.xml":
            let sitemaps = ["/one.xml", "/two.xml"].map { "<sitemap><loc>\(origin)\($0)</loc></sitemap>" }.joined()
            return .ok(Array("<sitemapindex>\(sitemaps)</sitemapindex>".utf8), type: "text/xml")
        case "/loop.xml":
            return .ok(Array("<sitemapindex><sitemap><loc>\(origin)/loop.xml</loc></sitemap></sitemapindex>".utf8))
        case "/one.xml": return sitemap(["http://a.example/1.jpg", "http://a.example/2.jpg"])
        case "/two.xml": return sitemap(["http://a.example/3.jpg"])
        case "/away": return .redirect(to: "/dir/page.html")
        case "/dir/page.html":
            return .ok(Array("<!doctype html><img src=1.jpg srcset='/2.jpg 2x'>".utf8), type: "text/html")
        case "/big.txt": return .ok(Array(String(repeating: "http://a.example/1.jpg\n", count: 10_000).utf8))
        default: return .status(404)
        }
    }

    @Test func `Lists are fetched, and an index with its sitemaps`() async throws {
        try await withWorker(Self.site) { w in
            try await w.run("init")
            let loopback = ["--allow-addresses", "loopback"]
            let index = try await w.run(["enqueue", "-f", w.url("/index.xml")] + loopback)
            #expect(index.errors.contains("index.xml: read as an XML sitemap: 2 sitemaps"))
            #expect(try await w.rows("SELECT url FROM items") == (1...3).map { "http://a.example/\($0).jpg" })
            try await w.run(
                [
                    "enqueue", "-f",
                    try w.file(
                        "i.xml", "<sitemapindex><sitemap><loc>\(w.url("/two.xml"))</loc></sitemap></sitemapindex>"),
                ] + loopback)
            try await w.run(["enqueue", "-f", w.url("/away")] + loopback)
            #expect(try await w.rows("SELECT url FROM items WHERE job = 3") == [w.url("/dir/1.jpg"), w.url("/2.jpg")])
        }
    }

    @Test func `Forbidden, too large and missing lists are refused, and nothing is enqueued`() async throws {
        try await withWorker(Self.site) { w in
            let loopback = ["--allow-addresses", "loopback"]
            let guarded = try await w.run("enqueue", "-f", w.url("/index.xml"), expecting: 64)
            #expect(guarded.errors.contains("index.xml can't be fetched: forbidden-address"))
            for (arguments, message) in [
                (["/none.xml"], "can't be fetched: http-404"), (["/loop.xml"], "indices in indices more than 3 deep"),
                (["/big.txt", "--max-list", "100kB"], "can't be fetched: too-large"),
            ] {
                let list = w.url(arguments[0])
                let refused = try await w.run(
                    ["enqueue", "-f", list] + arguments.dropFirst() + loopback, expecting: 64)
                #expect(refused.errors.contains(message), "\(refused.errors)")
            }
            #expect(access(w.database, F_OK) != 0)
        }
    }
}
