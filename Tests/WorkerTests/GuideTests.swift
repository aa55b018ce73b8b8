import Foundation
import SystemPackage
import TestSupport
import Testing

/// The commands of the pages in `docs/guides`, run as they are printed.
@Suite(.timeLimit(.minutes(15))) struct GuideTests {
    private static let sitemap = """
        <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://images.example.com/h.jpg</loc></url></urlset>
        """

    /// Answers as a proxy: a request names its whole URL. Pages use these names for what goes wrong.
    @Sendable private static func reply(_ request: LoopbackOrigin.Request) -> LoopbackReply {
        let path = request.path.prefix { $0 != "?" }
        if path.hasSuffix("/busy.jpg") { return .status(503) }
        if path.hasSuffix("/sitemap.xml") { return .ok(Array(sitemap.utf8), type: "application/xml") }
        if path.hasSuffix("/page.html") { return .ok(Array("<!doctype html><title>no picture</title>".utf8)) }
        if path.hasSuffix(".png") { return .ok(TestImages.png(320, 240), headers: [("ETag", "\"1\"")]) }
        guard path.hasSuffix(".jpg"), !path.hasSuffix("/missing.jpg"),
            let photograph = Pictures.photograph(named: path)
        else { return .status(404) }
        if request.header("If-None-Match") == "\"1\"" { return .status(304) }
        return .ok(photograph, headers: [("ETag", "\"1\"")])
    }

    @Test(arguments: Guide.all) func `The commands of a guide do what its page shows`(_ guide: Guide) async throws {
        try await withWorker(Self.reply) { w in
            let scratch = w.place("guide")
            let outputs = w.place("outputs")
            for folder in [scratch, outputs] {
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
            }
            for name in ["jobs", "scripts", "Examples", "docs"] {
                try FileManager.default.createSymbolicLink(
                    atPath: "\(scratch)/\(name)", withDestinationPath: Guide.root.appending(name).string)
            }
            let script = try w.file("guide.sh", "cd '\(scratch)'\n" + guide.program(outputs: outputs))
            var environment = try environment(w)
            if guide.name == "many-machines.md" {
                try #require(PostgresServer.isAvailable, Comment(rawValue: PostgresServer.missing))
                environment["WORKER_DB"] = try await PostgresServer.running.value.newSchema()
                environment["WORKER_CACHE"] = "s3://machines-\(getpid())/shop"
            }
            if ["cache-in-a-bucket.md", "many-machines.md"].contains(guide.name) {
                try #require(S3Server.isAvailable, Comment(rawValue: S3Server.missing))
                let server = try await S3Server.running.value
                environment["AWS_ENDPOINT_URL"] = server.endpoint
                environment["AWS_ACCESS_KEY_ID"] = server.key
                environment["AWS_SECRET_ACCESS_KEY"] = server.secret
            }
            try await w.run([script], program: "bash", environment: environment, within: .seconds(400))
            for (number, shown) in guide.shown.enumerated() {
                let printed = (try? w.text(of: "\(outputs)/\(number)")) ?? "nothing, since it was not run"
                #expect(shown.matches(printed), "\(guide.name):\(shown.line): \(shown.command)\nprinted:\n\(printed)")
            }
        }
    }

    /// The pages' own folder for everything, the origin as the proxy, and short waits.
    private func environment(_ w: TestWorker) throws -> [String: String] {
        let programs = FilePath(TestWorker.binary).removingLastComponent().string
        let folder = programs.hasPrefix("/") ? programs : Guide.root.appending(programs).string
        return [
            "PATH": "\(folder):\(ProcessInfo.processInfo.environment["PATH"] ?? ""):/usr/sbin",
            "WORKER_DB": "worker.db", "WORKER_CACHE": "cache", "WORKER_PROXY": w.origin.url(""),
            "WORKER_RETRY_DELAY": "20ms", "WORKER_MIN_FREE": "0", "PORT": "\(try LoopbackOrigin.unusedPort())",
        ]
    }

    @Test func `Every guide has commands`() {
        #expect(Guide.all.count == 19)
        for guide in Guide.all {
            #expect(guide.blocks.contains { ["sh", "console"].contains($0.kind) }, "\(guide.name)")
        }
    }

    /// Blocks that need root, systemd, or a whole build.
    @Test func `Only known blocks of the guides are not run`() {
        let left = Guide.all.flatMap { guide in
            guide.blocks.filter { $0.kind == "sh no-test" }.map { "\(guide.name): \($0.lines.first ?? "")" }
        }
        let known = [
            "cache-in-a-bucket.md: export AWS_ENDPOINT_URL=https://s3.example.com AWS_REGION=eu-central-1 AWS_PROFILE=pictures",
            "cron-and-services.md: openssl rand -hex 32 > /etc/prefetch-worker/notify.secret",
            "cron-and-services.md: cp nightly.yaml /etc/prefetch-worker/jobs/",
            "cron-and-services.md: sudo -u prefetch-worker worker status --config /etc/prefetch-worker/worker.yaml",
            "embed-in-swift.md: swift build --product SepiaWorker",
            "install.md: scripts/package",
            "install.md: sudo -u prefetch-worker worker enqueue https://example.com/a.jpg --config /etc/prefetch-worker/worker.yaml",
            "install.md: tar -xf prefetch-worker_*.tar.gz",
            "install.md: apt-get install libvips42 libcurl4 libsqlite3-0 libjpeg62-turbo libavif15 libjxl0.7 libwebp7 libwebpmux3 \\",
            "install.md: scripts/package --output packaging/out",
            "install.md: scripts/bootstrap --build",
            "many-machines.md: export WORKER_DB=postgres://worker@db.example.com/worker WORKER_CACHE=s3://pictures/shop WORKER_CACHE_FOLDER=in-use",
            "many-machines.md: cd packaging", "many-machines.md: kubectl apply -f packaging/kubernetes/worker.yaml",
            "many-machines.md: worker db move --db worker.db postgres://worker@db.example.com/worker",
        ]
        #expect(left == known)
        let kinds = Set(Guide.all.flatMap { $0.blocks.map(\.kind) })
        #expect(
            kinds.isSubset(of: [
                "", "sh", "console", "sh no-test", "sql", "nginx", "yaml", "ini", "text", "json", "swift", "python",
            ]))
    }

    @Test func `The Swift code in the guides is from the example`() throws {
        let folder = Guide.root.appending("Examples").appending("SepiaWorker")
        let example = fileNames(in: folder.string).map { folder.appending($0).string }
            .map { String(decoding: ProcessTable.contents(of: $0) ?? [], as: UTF8.self) }.joined(separator: "\n")
        let lines = Guide.all.flatMap(\.blocks).filter { $0.kind == "swift" }.flatMap(\.lines)
        for line in lines.map({ $0.trimmingCharacters(in: .whitespaces) })
        where !line.isEmpty && !line.hasPrefix(".product(") {
            #expect(example.contains(line), "\(line)")
        }
    }
}
