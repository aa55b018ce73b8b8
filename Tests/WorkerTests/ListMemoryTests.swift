import Glibc
import Synchronization
import TestSupport
import Testing

/// Long lists are read as streams: `worker enqueue` needs no more memory for them.
@Suite(.serialized, .timeLimit(.minutes(15))) struct ListMemoryTests {
    /// MiB, of the process alone.
    private static let most = 100

    /// Writes the lists with Python, and runs `worker enqueue` under it.
    ///
    /// - Returns: the peak of its memory in MiB.
    private func peak(
        _ w: TestWorker, making script: String = "", _ arguments: String..., expecting code: Int = 0,
    ) async throws -> Int {
        if !script.isEmpty { try await w.run("-c", script, w.scratch, program: "/usr/bin/python3") }
        let watch = """
            import resource, subprocess, sys
            run = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
            print(run.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)
            """
        let told = try await w.run(
            ["-c", watch, TestWorker.binary, "enqueue"] + arguments, program: "/usr/bin/python3")
        let numbers = told.line.split(separator: " ").compactMap { Int($0) }
        #expect(numbers.first == code, "\(told.errors)")
        return try #require(numbers.last)
    }

    @Test func `A CSV of 1,000,000 lines is read in bounded memory`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let script = """
                import sys
                with open(sys.argv[1] + "/list.csv", "w") as file:
                    file.write("sku,image\\n")
                    for n in range(1000000): file.write(f"{n},http://images.example.com/pictures/{n:07}.jpg\\n")
                """
            #expect(try await peak(w, making: script, "-f", w.place("list.csv")) < Self.most)
            #expect(try await w.value("SELECT total FROM jobs") == "1000000")
        }
    }

    @Test func `A compressed index of sitemaps with 100,000 URLs is read in bounded memory`() async throws {
        let script = """
            import gzip, sys
            for part in range(4):
                urls = "".join(f"<url><loc>http://a.example/{part}/{n}</loc><image:image><image:loc>http://a.example/{part}/{n}.jpg</image:loc></image:image></url>" for n in range(25000))
                text = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">' + urls + "</urlset>"
                with gzip.open(f"{sys.argv[1]}/{part}.xml.gz", "wb") as file: file.write(text.encode())
            parts = "".join(f"<sitemap><loc>{sys.argv[2]}/{part}.xml.gz</loc></sitemap>" for part in range(4))
            with gzip.open(f"{sys.argv[1]}/index.xml.gz", "wb") as file:
                file.write(f"<sitemapindex xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{parts}</sitemapindex>".encode())
            """
        let files = Shelf()
        try await withWorker({ request in .ok(files.bytes.withLock { $0[request.path] } ?? []) }) { w in
            try await w.run("init")
            try await w.run("-c", script, w.scratch, w.url(""), program: "/usr/bin/python3")
            var served: [String: [UInt8]] = [:]
            for part in ["0", "1", "2", "3", "index"] {
                served["/\(part).xml.gz"] = try w.bytes(of: w.place("\(part).xml.gz"))
            }
            files.bytes.withLock { [served] in $0 = served }
            #expect(try await peak(w, "-f", w.url("/index.xml.gz"), "--allow-addresses", "loopback") < Self.most)
            #expect(try await w.value("SELECT total FROM jobs") == "100000")
        }
    }

    @Test func `A page of 50 MB is read in bounded memory`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let script = """
                import sys
                with open(sys.argv[1] + "/page.html", "w") as file:
                    file.write("<html><body>")
                    for n in range(5000): file.write(f"<p>{'text ' * 2000}</p><img src='http://a.example/{n}.jpg' srcset='http://a.example/{n}-2.jpg 2x'>")
                """
            #expect(try await peak(w, making: script, "-f", w.place("page.html")) < Self.most)
            #expect(Int(try await w.value("SELECT total FROM jobs")) ?? 0 >= 5_000)
        }
    }

    @Test(arguments: [
        // Entities of entities: 10^9 times as long as the file.
        """
        <!DOCTYPE urlset [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">
        <!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;"><!ENTITY e "&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;"><!ENTITY f "&e;&e;&e;&e;&e;&e;&e;&e;&e;&e;">
        <!ENTITY g "&f;&f;&f;&f;&f;&f;&f;&f;&f;&f;"><!ENTITY h "&g;&g;&g;&g;&g;&g;&g;&g;&g;&g;">]>
        <urlset><url><loc>http://a.example/&h;.jpg</loc></url></urlset>
        """,
        """
        <!DOCTYPE urlset [<!ENTITY a SYSTEM "file:///etc/passwd">]>
        <urlset><url><loc>http://a.example/&a;.jpg</loc></url></urlset>
        """,
    ]) func `A hostile sitemap is refused in bounded memory`(_ text: String) async throws {
        try await withWorker { w in
            let list = try w.file("list.xml", text)
            #expect(try await peak(w, "-f", list, expecting: 64) < Self.most)
            #expect(access(w.database, F_OK) != 0)
        }
    }
}

/// What the origin serves, by path.
private final class Shelf: Sendable {
    let bytes = Mutex<[String: [UInt8]]>([:])
}
