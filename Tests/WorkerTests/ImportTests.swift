import Glibc
import SystemPackage
import TestSupport
import Testing

/// Imports of folders of pictures.
@Suite(.serialized, .timeLimit(.minutes(15))) struct ImportTests {
    private struct Counts: Decodable, Equatable {
        var stored = 0
        var replaced = 0
        var cached = 0
        var failed = 0
    }

    /// A folder of small pictures, named by their numbers.
    private func folder(_ w: TestWorker, _ count: Int) throws -> String {
        let folder = w.place("pictures")
        guard mkdir(folder, 0o700) == 0 else { throw Errno(rawValue: errno) }
        for number in 0..<count {
            if number % 100 == 0, mkdir("\(folder)/\(number / 100)", 0o700) != 0 { throw Errno(rawValue: errno) }
            try w.write(Self.picture(number), to: "\(folder)/\(number / 100)/\(number).png")
        }
        return folder
    }

    private static func picture(_ number: Int) -> [UInt8] {
        TestImages.png(16, 12, pixel: TestImages.solid((UInt8(number & 255), UInt8(number >> 8 & 255), 90, 255)))
    }

    @Test func `An import stores two thousand files and reports a bad file, and jobs make no request`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let folder = try folder(w, 2_000)
            try w.write(Array(Self.picture(5).prefix(60)), to: folder + "/7/777.png")
            let template = ["--url-template", w.url("/img/{path}")]
            let trial = try await w.run(["import", folder] + template + ["--dry-run"], expecting: 2)
            #expect(trial.lines.count == 2_000)
            #expect(trial.lines.contains("stored  3/333.png  \(w.url("/img/3/333.png"))"))
            #expect(w.blobs.isEmpty)
            #expect(try await w.value("SELECT (SELECT count(*) FROM entries) + (SELECT count(*) FROM workers)") == "0")
            let first = try await w.run(["import", folder, "--json"] + template, expecting: 2)
            #expect(try first.json(Counts.self) == Counts(stored: 1_999, failed: 1))
            #expect(first.errors.contains("7/777.png: "))
            #expect(w.blobs.count == 1_999)
            #expect(try w.bytes(of: try await w.path(w.url("/img/12/1234.png"))) == Self.picture(1_234))
            try w.write(Self.picture(777), to: folder + "/7/777.png")
            try w.write(Self.picture(3_000), to: folder + "/0/0.png")
            let second = try await w.run(["import", folder, "--json"] + template)
            #expect(try second.json(Counts.self) == Counts(stored: 1, replaced: 1, cached: 1_998))
            try await w.enqueue((0..<50).map { w.url("/img/0/\($0).png") }, "--variant", "v=8x,png")
            try await w.drain()
            #expect(try await w.counts("1") == "0|50|0|0|0")
            #expect(w.origin.requests.isEmpty)
        }
    }

    @Test func `Odd file names become encoded URLs, and links out of the folder are not followed`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let folder = try folder(w, 0)
            let names = [
                "a b.png": "a%20b.png", "100%.png": "100%25.png", "a#b.png": "a%23b.png", "a?b.png": "a%3Fb.png",
                "äpfel.png": "%C3%A4pfel.png", "two\nlines.png": "two%0Alines.png",
                "(1)+2&3=4,5.png": "(1)+2&3=4,5.png",
                "quote\".png": "quote%22.png", ".hidden": ".hidden",
            ]
            for (number, name) in names.keys.sorted().enumerated() {
                try w.write(Self.picture(number), to: "\(folder)/\(name)")
            }
            try w.write(Self.picture(99), to: w.place("secret.png"))
            #expect(symlink(w.place("secret.png"), folder + "/link.png") == 0)
            #expect(symlink(w.home, folder + "/home") == 0)
            #expect(mkfifo(folder + "/pipe.png", 0o600) == 0)
            let counts = try await w.run("import", folder, "--url-template", w.url("/{path}"), "--json")
            #expect(try counts.json(Counts.self) == Counts(stored: names.count))
            let urls = try await w.rows("SELECT url FROM entries ORDER BY url")
            #expect(Set(urls) == Set(names.values.map { w.url("/\($0)") }))
            // In a query, all but unreserved characters are encoded; and --match chooses.
            let query = try await w.run(
                "import", folder, "--url-template", w.url("/get?f={stem}&x={extension}"), "--match", "(1)*", "--json")
            #expect(try query.json(Counts.self) == Counts(stored: 1))
            _ = try await w.path(w.url("/get?f=%281%29%2B2%263%3D4%2C5&x=png"))
            for wrong in ["https://a.example/", "https://a.example/{paht}", "https://a.example/{path"] {
                try await w.run("import", folder, "--url-template", wrong, expecting: 64)
            }
            try await w.run("import", folder, expecting: 64)
            try await w.run("import", folder + "/none", "--url-template", "https://a.example/{path}", expecting: 64)
        }
    }

    @Test func `A list gives files and URLs as CSV, with tabs or as JSON`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let folder = try folder(w, 8)
            try w.write(Self.picture(9), to: w.place("secret.png"))
            #expect(symlink(w.place("secret.png"), folder + "/link.png") == 0)
            try w.write(Self.picture(8), to: folder + "/a, \"b\".png")
            let list = try w.file(
                "list.csv",
                """
                # path,url
                0/0.png,\(w.url("/0"))
                0/1.png\t\(w.url("/1"))
                {"path":"0/2.png","url":"\(w.url("/2"))"}
                "a, ""b"".png",\(w.url("/b"))\r

                \(folder)/0/3.png,\(w.url("/3"))
                ../secret.png,\(w.url("/secret"))
                link.png,\(w.url("/link"))
                0/none.png,\(w.url("/none"))
                0,\(w.url("/folder"))
                0/4.png,no URL
                nonsense
                """)
            let run = try await w.run("import", folder, "--list", list, "--json", expecting: 2)
            #expect(try run.json(Counts.self) == Counts(stored: 5, failed: 6))
            #expect(run.errors.contains("line 13: invalid-item: "), "\(run.errors)")
            #expect(run.errors.contains("0/4.png: invalid-url: "))
            #expect(run.errors.contains("link.png: not-an-image: It is a symbolic link"))
            #expect(
                try await w.rows("SELECT url FROM entries ORDER BY url")
                    == ["/0", "/1", "/2", "/3", "/b"].map(w.url))
            let input = try await w.run(
                "import", folder, "--list", "-", "--json", input: "0/5.png,\(w.url("/5"))\n0/6.png,\(w.url("/6"))")
            #expect(try input.json(Counts.self) == Counts(stored: 2))
        }
    }

    @Test func `An import with a limit goes on the next time`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let folder = try folder(w, 25)
            let arguments = ["import", folder, "--url-template", w.url("/{name}"), "--limit", "10", "--json"]
            #expect(try await w.run(arguments).json(Counts.self).stored == 10)
            #expect(try await w.run(arguments).json(Counts.self) == Counts(stored: 10, cached: 10))
            #expect(try await w.run(arguments).json(Counts.self) == Counts(stored: 5, cached: 20))
        }
    }

    @Test func `An import keeps to the size limit of the cache`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let folder = try folder(w, 150)
            let limit = 100 * Self.picture(0).count
            let arguments = ["import", folder, "--url-template", w.url("/{name}"), "--json"]
            let run = try await w.run(arguments + ["--cache-max-size", "\(limit)B"])
            #expect(try run.json(Counts.self) == Counts(stored: 150))
            #expect(try await Int(w.value("SELECT bytes FROM cache_totals")) ?? .max <= limit)
            #expect((1...100).contains(w.blobs.count))
            #expect(try await w.value("SELECT count(*) FROM reservations") == "0")
        }
    }

    /// After each kill the cache and its index agree, and in the end all files are stored.
    @Test(arguments: [[], ["--cache-max-size", "100MiB"]])
    func `A killed import leaves a consistent cache and can be repeated`(_ flags: [String]) async throws {
        try await withWorker { w in
            try await w.run("init")
            let folder = try folder(w, 1_000)
            let arguments = ["import", folder, "--url-template", w.url("/{name}"), "--json"] + flags
            let command = "'\(TestWorker.binary)' " + arguments.map { "'\($0)'" }.joined(separator: " ")
            for count in [0, 1, 100, 300, 600, 800] {
                // Killed as soon as so many files have a name; their rows may be missing then.
                let killed = """
                    \(command) & p=$!
                    until [ $(find '\(w.cache)/blobs' -type f | wc -l) -gt \(count) ] || ! kill -0 $p; do sleep 0.01; done
                    kill -9 $p; wait $p
                    """
                try await w.run("-c", killed, program: "sh", expecting: nil)
                try await w.eventually("its helpers are gone", within: .seconds(5)) { w.processes.isEmpty }
                try await w.run("cache", "verify")
            }
            let last = try await w.run(arguments).json(Counts.self)
            #expect(last.stored + last.cached == 1_000 && last.failed == 0)
            #expect(try await w.value("SELECT count(*) FROM entries") == "1000")
            try await w.run("cache", "gc", "--orphan-grace", "0")
            #expect(w.blobs.count == 1_000)
            #expect(try await w.value("SELECT count(*) FROM reservations") == "0")
        }
    }

    @Test func `Ctrl-C ends an import, and the next import skips the stored files`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let folder = try folder(w, 2_000)
            let arguments = ["import", folder, "--url-template", w.url("/{name}"), "--json"]
            let stopped = "timeout -s INT 0.6 '\(TestWorker.binary)' "
            let first = try await w.run(
                ["-c", stopped + arguments.map { "'\($0)'" }.joined(separator: " ")], program: "sh", expecting: nil)
            let before = first.output.isEmpty ? Counts() : try first.json(Counts.self)
            #expect(try await w.value("SELECT count(*) FROM entries") == "\(before.stored)")
            let second = try await w.run(arguments).json(Counts.self)
            #expect(second == Counts(stored: 2_000 - before.stored, cached: before.stored))
        }
    }
}
