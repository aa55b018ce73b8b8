import Glibc
import SystemPackage
import TestSupport
import Testing

/// Programs that read exports: a web server, and a reader of datasets in tar files.
@Suite(.timeLimit(.minutes(15))) struct ExportReadersTests {
    private static let count = 600

    /// webdataset and what it needs, as `scripts/bootstrap` installs them.
    private static let webdataset = FilePath(#filePath).removingLastComponent().removingLastComponent()
        .removingLastComponent().appending(".build/webdataset").string

    /// A job of 600 photographs with captions, and a variant of each.
    private func fill(_ w: TestWorker) async throws {
        let rows = (1...Self.count).map { "{\"url\":\"\(w.url("/\($0).jpg"))\",\"caption\":\"picture \($0)\"}" }
        try await w.enqueue(
            "-f", try w.file("list.jsonl", rows.joined(separator: "\n")), "--variant", "small=160x,webp")
        try await w.drain(within: .seconds(300))
    }

    /// A photograph with other bytes at each URL.
    private static func picture(_ request: LoopbackOrigin.Request) -> LoopbackReply {
        guard let photograph = Pictures.photograph(named: request.path) else { return .status(404) }
        return .ok(photograph)
    }

    @Test(
        .enabled(
            if: access("\(webdataset)/webdataset", F_OK) == 0,
            "scripts/bootstrap could not download webdataset."))
    func `webdataset reads each picture with its caption and its result`() async throws {
        try await withWorker(Self.picture) { w in
            try await fill(w)
            let folder = w.place("shards")
            try await w.run("export", "1", folder, "--tar", "--per-shard", "250", "--variant", "small")
            let script = """
                import json, sys
                sys.path.insert(0, sys.argv[1])
                import webdataset
                samples = webdataset.WebDataset(sys.argv[2] + "/{00000..00002}.tar", shardshuffle=False)
                for sample in samples:
                    row = json.loads(sample["json"])
                    assert sample["webp"][:4] == b"RIFF" and len(sample["webp"]) == row["size"], row
                    print(sample["__key__"], sample["txt"].decode(), row["url"].rpartition("/")[2])
                """
            let told = try await w.run("-c", script, Self.webdataset, folder, program: "/usr/bin/python3")
            let expected = (1...Self.count).map { number in
                let (shard, place) = ((number - 1) / 250, (number - 1) % 250)
                return "0000\(shard)\(String(1_0000 + place).dropFirst()) picture \(number) \(number).jpg"
            }
            #expect(told.lines == expected)
        }
    }

    @Test(.enabled(if: Nginx.isAvailable, "nginx and openssl are needed"))
    func `nginx serves an exported tree with its page of thumbnails`() async throws {
        try await withWorker(Self.picture) { w in
            try await fill(w)
            let folder = w.place("tree")
            try await w.run("export", "1", folder, "--html", "--by", "copy")
            let scratch = FilePath(w.place("nginx"))
            guard mkdir(scratch.string, 0o755) == 0 else { throw Errno(rawValue: errno) }
            let nginx = try Nginx(serving: scratch, scratch: scratch, locations: "location / { root \(folder); }")
            defer { nginx.stop() }
            func served(_ path: String) async throws -> TestWorker.Finished {
                try await w.run(["--silent", "--fail", nginx.url("/" + path)], program: "curl")
            }
            let page = try await served("index.html").output
            let shown = page.matches(of: /src="([^"]+)"/).map { String($0.output.1) }
            #expect(shown.count == Self.count)
            // Every name in the page is one that the server finds, and its bytes are the cache's.
            for name in shown.enumerated().filter({ $0.offset % 60 == 0 }).map(\.element) {
                try await w.run(
                    ["--silent", "--fail", "--output", w.place("one"), nginx.url("/" + name)], program: "curl")
                #expect(try w.bytes(of: w.place("one")) == w.bytes(of: "\(folder)/\(name)"))
            }
            let index = try await served("index.jsonl").output
            #expect(index.filter(\.isNewline).count == 2 * Self.count)
        }
    }
}
