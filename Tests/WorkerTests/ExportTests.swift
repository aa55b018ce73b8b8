import Glibc
import TestSupport
import Testing

/// `worker export`: trees of files and tar files of a job's results.
@Suite(.timeLimit(.minutes(15))) struct ExportTests {
    private struct Line: Decodable {
        let file, url: String
        let variant: String?
        let meta: [String: String]?
    }

    private struct Counts: Decodable {
        let pictures, files, missing, shards: Int
    }

    private func lines(_ w: TestWorker, _ folder: String) throws -> [Line] {
        try TestWorker.Finished(exit: .code(0), output: w.text(of: "\(folder)/index.jsonl"), errors: "")
            .jsonLines(Line.self)
    }

    private func inode(_ path: String) -> UInt64 {
        var info = stat()
        return lstat(path, &info) == 0 ? UInt64(info.st_ino) : 0
    }

    /// A picture of its own for each path.
    private static func picture(_ request: LoopbackOrigin.Request) -> LoopbackReply {
        .ok(Pictures.png(request.path.utf8.reduce(1) { ($0 * 31 + Int($1)) % 250 }))
    }

    @Test func `An exported tree has the files and an index of them`() async throws {
        try await withWorker(Self.picture) { w in
            let list = try w.file("list.csv", "url,sku\n\(w.url("/shoes/1.png")),a7\n\(w.url("/2.png?x=1")),b\n")
            try await w.enqueue("-f", list, "--variant", "thumb=16x12,webp")
            try await w.drain()
            let folder = w.place("out")
            let told = try await w.run("export", "1", folder, "--html")
            #expect(told.output.hasPrefix("4 files of 2 pictures, "))
            let found = try lines(w, folder)
            #expect(
                found.map(\.file).sorted() == [
                    "000000001-1.original.png", "000000001-1.thumb.webp", "000000002-2.original.png",
                    "000000002-2.thumb.webp",
                ])
            #expect(Set(found.compactMap { $0.meta?["sku"] }) == ["a7", "b"])
            for line in found {
                let cached = try await w.path(line.url, variant: line.variant == "thumb" ? "thumb" : nil)
                #expect(inode("\(folder)/\(line.file)") == inode(cached))
            }
            #expect(try w.text(of: "\(folder)/index.csv").hasPrefix("file,job,item,url,"))
            let page = try w.text(of: "\(folder)/index.html")
            #expect(
                page.contains("src=\"000000001-1.thumb.webp\"") && page.contains("href=\"000000001-1.original.png\""))
            #expect(access(folder + ".partial", F_OK) != 0)
            // What is there already stays as it is.
            #expect(try await w.run("export", "1", folder, expecting: 73).errors.contains("not empty"))
        }
    }

    @Test(arguments: ["copy", "reflink", "symlink"])
    func `Exported files are copies, reflinks or symbolic links as --by says`(_ way: String) async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"))
            try await w.drain()
            let folder = w.place("out")
            try await w.run("export", "1", folder, "--by", way, "--name", "{stem}.{extension}")
            let cached = try await w.path(w.url("/1.png"))
            #expect(try w.bytes(of: "\(folder)/1.png") == w.bytes(of: cached))
            #expect(inode("\(folder)/1.png") != inode(cached))
            var info = stat()
            #expect(lstat("\(folder)/1.png", &info) == 0)
            #expect((info.st_mode & S_IFMT == S_IFLNK) == (way == "symlink"))
        }
    }

    @Test func `Every file name stays in the folder and is unique`() async throws {
        try await withWorker(Self.picture) { w in
            let urls = [
                "/a/%2e%2e/%2e%2e/%2e%2e/etc/1.png", "/..%2f..%2f2.png", "/.hidden/.3.png", "/%00%0a4.png",
                "/5.png/6.png",
                "/5.png", "/same/7.png", "/other/same/../7.png",
                "/" + String(repeating: "%C3%A9", count: 300) + "8.png",
            ].map { w.url($0) }
            try await w.enqueue(urls)
            try await w.drain(expecting: nil)
            let count = Int(try await w.value("SELECT count(*) FROM items WHERE state = 'done'")) ?? 0
            #expect(count >= 7)
            for (number, template) in [
                "{path}", "{stem}", "{host}/{name}", "../{path}", "/{folder}/../{name}", "x{variant}",
            ]
            .enumerated() {
                let parent = w.place("parent-\(number)")
                #expect(mkdir(parent, 0o755) == 0)
                try await w.run("export", "1", "\(parent)/out", "--name", template)
                #expect(fileNames(in: parent).filter { $0 != "." && $0 != ".." } == ["out"])
                let files = try lines(w, "\(parent)/out").map(\.file)
                #expect(files.count == count && Set(files).count == count, "\(template): \(files)")
                for file in files {
                    #expect(
                        file.split(separator: "/", omittingEmptySubsequences: false).allSatisfy {
                            !$0.hasPrefix(".") && !$0.isEmpty
                        })
                    #expect(access("\(parent)/out/\(file)", F_OK) == 0, "\(file)")
                }
            }
            for wrong in ["{nothing}", "{stem", "constant"] {
                try await w.run("export", "1", w.place("none"), "--name", wrong, expecting: 64)
            }
        }
    }

    @Test func `Tar files are read by Python, with captions and results`() async throws {
        try await withWorker { w in
            let rows = (1...5).map { "{\"url\":\"\(w.url("/\($0).png"))\",\"caption\":\"picture \($0)\"}" }
            try await w.enqueue(
                "-f", try w.file("list.jsonl", rows.joined(separator: "\n")), "--variant", "small=8x,png")
            try await w.drain()
            let folder = w.place("shards")
            let counts = try await w.run(
                "export", "1", folder, "--tar", "--per-shard", "2", "--variant", "small", "--json"
            ).json(Counts.self)
            #expect((counts.pictures, counts.files, counts.shards, counts.missing) == (5, 5, 3, 0))
            let script = """
                import json, sys, tarfile
                for shard in ("00000", "00001", "00002"):
                    with tarfile.open(f"{sys.argv[1]}/{shard}.tar") as tar:
                        for member in tar:
                            bytes = tar.extractfile(member).read()
                            end = member.name.partition(".")[2]
                            kind = {"png": bytes[1:4], "txt": bytes}.get(end)
                            told = kind.decode() if kind else json.loads(bytes)["url"].rpartition("/")[2]
                            print(member.name, told)
                """
            let told = try await w.run("-c", script, folder, program: "/usr/bin/python3")
            #expect(
                told.lines
                    == (1...5).flatMap { number in
                        let key = "0000\((number - 1) / 2)000\((number - 1) % 2)"
                        return ["\(key).png PNG", "\(key).txt picture \(number)", "\(key).json \(number).png"]
                    })
        }
    }

    @Test func `Lost and damaged files are counted, and the other files are exported`()
        async throws
    {
        try await withWorker { w in
            try await w.enqueue((1...3).map { w.url("/\($0).png") })
            try await w.drain()
            try w.flipByte(of: try await w.path(w.url("/1.png")))
            let lost = try await w.path(w.url("/2.png"))
            #expect(unlink(lost) == 0)
            let told = try await w.run("export", "1", w.place("out"), expecting: 2)
            #expect(told.output.hasPrefix("1 file of 1 picture,"))
            #expect(told.errors.contains("2 files of the job can't be found in the cache any more"))
            try await w.run("export", "9", w.place("none"), expecting: 64)
            let file = try w.file("file", "mine")
            let refused = try await w.run("export", "1", file, expecting: 73)
            #expect(refused.errors.contains("is there and no folder"), "\(refused.errors)")
            #expect(try w.bytes(of: file) == Array("mine".utf8))
            let unknown = try await w.run("export", "1", w.place("other"), "--variant", "orginal", expecting: 64)
            #expect(unknown.errors.contains("Did you mean 'original'?"), "\(unknown.errors)")
            // Fetched anew, so that the cache is whole again.
            try await w.run("cache", "verify", expecting: 74)
            try await w.enqueue((1...3).map { w.url("/\($0).png") })
            try await w.drain()
        }
    }

    @Test func `Markup in URLs and meta is escaped on the page`() async throws {
        try await withWorker { w in
            let list = try w.file("list.csv", "url,title\n\(w.url("/1.png?<script>alert(1)</script>")),\"<b>\"\"x\"\n")
            try await w.enqueue("-f", list)
            try await w.drain()
            try await w.run("export", "1", w.place("out"), "--html", "--name", "{meta.title}{number}.{extension}")
            let page = try w.text(of: w.place("out") + "/index.html")
            #expect(!page.contains("<script>") && !page.contains("<b>"))
        }
    }
}
