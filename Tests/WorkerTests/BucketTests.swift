import Core
import Glibc
import Hashing
import ObjectStorage
import SystemPackage
import TestSupport
import Testing

/// A cache in a bucket of a real S3 server, with a folder of this machine in front of it.
@Suite(
    "A cache in a bucket", .enabled(if: S3Server.isAvailable, Comment(rawValue: S3Server.missing)),
    .timeLimit(.minutes(15)))
struct BucketTests {
    @Test func `The files of an ended batch are in the bucket, and a machine with an empty folder reads them`()
        async throws
    {
        try await withBucket { w, bucket in
            let urls = (1...20).map { w.url("/\($0).png") }
            try await w.enqueue(urls + ["--variant", "t=32x,webp"])
            try await w.drain()
            #expect(try await w.value("SELECT count(*) FROM entries") == "40")
            #expect(try await bucket.blobs() == Set(try await w.rows("SELECT blob FROM entries")))
            let metrics = try await w.run("metrics").output
            let sent = try await w.value("SELECT sum(size) FROM blobs")
            for line in [
                #"worker_bucket_requests_total{request="put",status="2xx"} "#,
                "worker_bucket_sent_bytes_total \(sent)\n",
            ] {
                #expect(metrics.contains(line), "\(line)\n\(metrics)")
            }
            try await w.run("-r", w.cache, program: "rm")
            let path = try await w.run("get", urls[0], "--variant", "t").line
            #expect(path.hasPrefix(w.cache))
            #expect(try w.bytes(of: path).starts(with: Array("RIFF".utf8)))
            #expect(w.blobs.count == 1)
            try await w.run("export", "1", w.place("tree"))
            #expect(try await w.run("cache", "verify").output.hasPrefix("40 blobs are good"))
            #expect(try await w.run("cache", "verify", "--quick").output.hasPrefix("40 blobs are good"))
            // Nothing of it is fetched again.
            try await w.enqueue(urls + ["--variant", "t=32x,webp"])
            let asked = w.origin.requests.count
            try await w.drain()
            #expect(w.origin.requests.count == asked)
        }
    }

    @Test func `A signed URL of the bucket serves the file with the image's type`() async throws {
        try await withBucket { w, bucket in
            let url = w.url("/1.png")
            try await w.enqueue(url, "--variant", "t=32x,webp")
            try await w.drain()
            for (variant, type) in [("original", "image/png"), ("t", "image/webp")] {
                let signed = try await w.run("get", url, "--variant", variant, "--url", "--expires", "5m").line
                #expect(signed.contains("X-Amz-Expires=300"))
                let told = try await w.run(
                    "-sS", "-o", w.place(variant), "-w", "%{http_code} %{content_type}", signed, program: "curl")
                #expect(told.line == "200 \(type)")
                let path = try await w.run("get", url, "--variant", variant).line
                #expect(try w.bytes(of: w.place(variant)) == w.bytes(of: path))
            }
            let missing = try await w.run("get", url, "--variant", "tt", "--url", expecting: 1)
            #expect(missing.errors.contains("Cached: original, t."))
            try await w.run("get", url, "--url", "--expires", "8d", expecting: 64)
            #expect(try await w.run("get", url, "--link", expecting: 64).errors.contains("There are no links"))
        }
    }

    @Test func `Removed, evicted and orphaned blobs are deleted from the bucket as well`() async throws {
        try await withBucket { w, bucket in
            let urls = (1...6).map { w.url("/\($0).png") }
            try await w.enqueue(urls)
            try await w.drain()
            // The folder has nothing to lock for the one half.
            for blob in w.blobs.sorted().prefix(3) { unlink("\(w.cache)/blobs/sha256/\(blob)") }
            try await w.run("cache", "remove", urls[0], urls[1], urls[2], urls[3])
            #expect(try await bucket.blobs() == Set(try await w.rows("SELECT blob FROM entries")))
            #expect(try await bucket.blobs().count == 2)
            let stranger = Array("left by a crash".utf8)
            let hash = try await bucket.put(stranger)
            try await w.run("cache", "gc")
            #expect(try await bucket.blobs().contains(hash))
            try await w.run("cache", "gc", "--orphan-grace", "0")
            #expect(try await bucket.blobs().count == 2)
            try await w.run("cache", "pin", urls[4])
            try await w.run("cache", "clear", "--yes")
            #expect(try await bucket.blobs() == Set(try await w.rows("SELECT blob FROM entries")))
            #expect(try await bucket.blobs().count == 1)
        }
    }

    @Test func `A damaged file in the folder is restored from the bucket, and in the bucket from the origin`()
        async throws
    {
        try await withBucket { w, bucket in
            let url = w.url("/1.png")
            try await w.enqueue(url)
            try await w.drain()
            let path = try await w.run("get", url).line
            let right = try w.bytes(of: path)
            try w.flipByte(of: path)
            #expect(try await w.run("get", url).line == path)
            #expect(try w.bytes(of: path) == right)
            let hash = try await w.value("SELECT blob FROM entries")
            let key = "blobs/sha256/\(hash.prefix(2))/\(hash)"
            try await bucket.bucket.put(key, Array("not these bytes".utf8))
            // The folder has the right ones.
            #expect(try await w.run("cache", "verify").output.hasPrefix("1 blob is good"))
            try await bucket.bucket.delete([key])
            #expect(try await w.run("cache", "verify", "--quick").output.hasPrefix("1 blob is good"))
            unlink(path)
            try await bucket.bucket.put(key, Array("not these bytes".utf8))
            let verified = try await w.run("cache", "verify", expecting: 74)
            #expect(verified.output.contains("damaged"), "\(verified.output)")
            try await w.run("cache", "verify", "--repair", expecting: nil)
            try await w.drain()
            try await w.run("cache", "verify")
            unlink(path)
            #expect(try w.bytes(of: try await w.run("get", url).line) == right)
        }
    }

    @Test func `The folder stays within its size limit, and every file of the index can still be read`() async throws {
        let big = (1...60).map { Scene.png($0) }
        let size = big.reduce(0) { $0 + $1.count }
        try await withBucket({ request in .ok(big[(Pictures.number(in: request.path) ?? 1) - 1], type: "image/png") }) {
            w, bucket in
            let limit = size / 4
            w.set(["WORKER_CACHE_FOLDER_SIZE": "\(limit)B"])
            let urls = (1...60).map { w.url("/\($0).png") }
            try await w.enqueue(urls)
            try await w.drain()
            try await w.run("cache", "gc")
            #expect(try w.folderBytes() <= limit)
            #expect(try await w.value("SELECT count(*) FROM entries") == "60")
            for (url, bytes) in zip(urls, big) { #expect(try w.bytes(of: try await w.run("get", url).line) == bytes) }
        }
    }

    @Test func `Workers that evict each other's files lose no file of the index`() async throws {
        try await withBucket { w, bucket in
            let limits = ["--cache-max-size", "60kB", "--orphan-grace", "0", "--per-host", "20"]
            // The same few blobs come and go: each is published while it is about to be deleted.
            let urls = (0..<300).map { w.url("/\($0 % 40).png?\($0)") }
            try await w.enqueue(urls)
            let others = try (0..<2).map { _ in try w.start(TestWorker.quick + limits) }
            try await w.run(["run", "--drain"] + TestWorker.quick + limits, within: .seconds(300))
            for other in others { other.send(SIGTERM) }
            for other in others { #expect(try await other.wait() == .code(0)) }
            #expect(try await w.value("SELECT count(*) FROM items WHERE state <> 'done' AND state <> 'cached'") == "0")
            #expect(try await bucket.blobs().isSuperset(of: try await w.rows("SELECT blob FROM entries")))
            try await w.run("cache", "verify")
            try await w.run("cache", "gc", "--orphan-grace", "0")
            #expect(try await bucket.blobs() == Set(try await w.rows("SELECT blob FROM entries")))
        }
    }

    @Test func `Kills of a worker lose no blob of the index and leave no orphan in the bucket`() async throws {
        try await withBucket { w, bucket in
            try await w.enqueue((0..<300).map { w.url("/\($0).png") } + ["--variant", "t=32x,webp"])
            for _ in 0..<8 {
                let worker = try await w.startRegistered()
                try await Task.sleep(for: .milliseconds(Int.random(in: 0...700)))
                worker.send(SIGKILL)
                _ = try await worker.wait()
                #expect(try await bucket.blobs().isSuperset(of: try await w.rows("SELECT blob FROM entries")))
            }
            try await w.drain(within: .seconds(200))
            #expect(try await w.value("SELECT count(*) FROM entries") == "600")
            try await w.run("cache", "verify")
            try await w.run("cache", "gc", "--orphan-grace", "0")
            #expect(try await bucket.blobs() == Set(try await w.rows("SELECT blob FROM entries")))
        }
    }

    @Test func `A cache in a folder is uploaded, and its database is then used with the bucket`() async throws {
        try await withWorker { w in
            try await w.enqueue((0..<150).map { w.url("/\($0).png") })
            try await w.drain()
            let bucket = try await TestBucket()
            var variables = bucket.variables(w)
            let own = try await w.run(["run", "--drain"], environment: variables, expecting: 73)
            #expect(own.errors.contains("is a cache of its own"), "\(own.errors)")
            variables["WORKER_CACHE_FOLDER"] = w.home + "/cache-2"
            let refused = try await w.run(["run", "--drain"], environment: variables, expecting: 73)
            #expect(refused.errors.contains("worker cache upload \(bucket.name)"), "\(refused.errors)")
            variables["WORKER_CACHE"] = w.cache
            let sent = try await w.run(["cache", "upload", bucket.name], environment: variables)
            #expect(sent.output.hasPrefix("150 files sent"))
            #expect(sent.output.contains(" 0 were in the bucket already"))
            let again = try await w.run(["cache", "upload", bucket.name], environment: variables)
            #expect(again.output.hasPrefix("0 files sent"))
            #expect(again.output.contains("150 were in the bucket already"))
            let asked = w.origin.requests.count
            variables["WORKER_CACHE"] = bucket.name
            defer { _ = try? ChildProcess.run("rm", ["-r", w.home + "/cache-2"]) }
            let path = try await w.run(["get", w.url("/7.png")], environment: variables).line
            #expect(try w.bytes(of: path) == Pictures.png(7))
            #expect(w.origin.requests.count == asked)
            let none = try await w.run(["cache", "upload", w.place("folder")], expecting: 64)
            #expect(none.errors.contains("is no bucket"))
            _ = try ChildProcess.run("rm", ["-r", w.home + "/cache-2"])
        }
    }

    @Test func `Another database, a copy of the database and another use of the folder are refused`() async throws {
        try await withBucket { w, bucket in
            let url = w.url("/1.png")
            try await w.enqueue(url)
            try await w.drain()
            let other = w.place("other.db")
            try await w.run(["init", "--db", other, "--cache", w.place("own")])
            for command in [["run", "--drain", "--orphan-grace", "0"], ["cache", "gc", "--orphan-grace", "0"]] {
                let told = try await w.run(command + ["--db", other], expecting: 73)
                #expect(told.errors.contains("belongs to another database"), "\(told.errors)")
            }
            let copy = w.place("copy.db")
            try await w.sql("VACUUM INTO '\(copy)'")
            let copied = try await w.run("run", "--drain", "--db", copy, expecting: 73)
            #expect(copied.errors.contains("is a copy of"), "\(copied.errors)")
            let plain = try await w.run("run", "--drain", "--cache", w.cache, expecting: 73)
            #expect(plain.errors.contains("holds copies of what is in \(bucket.name)"), "\(plain.errors)")
            let elsewhere = try await w.run("run", "--drain", "--cache", bucket.name + "-2", expecting: 73)
            #expect(elsewhere.errors.contains("and not in \(bucket.name)-2"), "\(elsewhere.errors)")
            let links = try await w.run("run", "--drain", "--links", "tree", expecting: 64)
            #expect(links.errors.contains("no links"), "\(links.errors)")
            #expect(try await bucket.blobs().count == 1)
        }
    }

    @Test func `Wrong bucket settings are refused with a reason`() async throws {
        try await withBucket { w, bucket in
            let unknown = try await w.run(
                "run", "--drain", "--cache", "s3://no-such-bucket/x", "--cache-folder", w.place("a"), expecting: 73)
            #expect(unknown.errors.contains("There is no bucket 'no-such-bucket'"), "\(unknown.errors)")
            try await w.run("init")
            #expect(try await w.run("doctor", expecting: nil).output.contains("ok: cache: \(bucket.name) can be read"))
            try await w.run("run", "--drain", "--cache", "s3://X", "--cache-folder", w.place("a"), expecting: 64)
            let denied = try await w.run(
                ["run", "--drain"], environment: ["AWS_SECRET_ACCESS_KEY": "wrong"], expecting: 73)
            #expect(!denied.errors.contains(bucket.secret))
            #expect(denied.errors.contains("SignatureDoesNotMatch"), "\(denied.errors)")
            let folder = try await w.run(
                "get", w.url("/1.png"), "--url", "--db", w.place("b.db"), "--cache", w.place("b"), expecting: nil)
            #expect(folder.exit != .code(0))
        }
    }
}

/// A bucket of its own for one test.
struct TestBucket: Sendable {
    let bucket: Bucket
    let endpoint: String
    let secret: String
    private let key: String

    var name: String { "\(bucket.location)" }

    init() async throws {
        let server = try await S3Server.running.value
        (endpoint, key, secret) = (server.endpoint, server.key, server.secret)
        let name = "worker-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        let location = try BucketLocation(
            "s3://\(name)/some/where", server: BucketLocation.Server(endpoint: server.endpoint))
        let variables = ["AWS_ACCESS_KEY_ID": server.key, "AWS_SECRET_ACCESS_KEY": server.secret]
        bucket = Bucket(location, credentials: CredentialSettings(environment: { variables[$0] }))
        try await bucket.make()
    }

    func variables(_ w: TestWorker) -> [String: String] {
        [
            "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret,
            "WORKER_CACHE": name, "WORKER_CACHE_FOLDER": w.cache,
        ]
    }

    /// The hashes of all blobs in it.
    func blobs() async throws -> Set<String> {
        var found: Set<String> = []
        var next: String?
        repeat {
            let page = try await bucket.list("blobs/", continuing: next)
            found.formUnion(page.objects.map { String($0.key.suffix(64)) })
            next = page.next
        } while next != nil
        return found
    }

    /// Stores a blob that no index knows.
    func put(_ bytes: [UInt8]) async throws -> String {
        let hash = BlobHash(digest: SHA256.digest(of: bytes)).hex
        try await bucket.put("blobs/sha256/\(hash.prefix(2))/\(hash)", bytes)
        return hash
    }
}

/// Lends a worker whose cache is in a bucket of its own.
func withBucket(
    _ handler: @escaping @Sendable (LoopbackOrigin.Request) -> LoopbackReply = Pictures.reply,
    _ body: (TestWorker, TestBucket) async throws -> Void,
) async throws {
    let bucket = try await TestBucket()
    try await withWorker(handler) { w in
        w.set(bucket.variables(w))
        try await body(w, bucket)
    }
}

extension TestWorker {
    fileprivate func folderBytes() throws -> Int {
        try blobs.reduce(0) { $0 + (try bytes(of: "\(cache)/blobs/sha256/\($1)").count) }
    }
}
