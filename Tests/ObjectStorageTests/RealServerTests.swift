import Core
import SystemPackage
import TestSupport
import Testing

@testable import ObjectStorage

/// The client and a real S3 server, Ceph's gateway.
@Suite(
    "A real server", .enabled(if: S3Server.isAvailable, Comment(rawValue: S3Server.missing)), .timeLimit(.minutes(15)))
struct RealServerTests {
    private let server: S3Server

    init() async throws { server = try await S3Server.running.value }

    private func credentials(secret: String? = nil) -> CredentialSettings {
        CredentialSettings(
            environment: ["AWS_ACCESS_KEY_ID": server.key, "AWS_SECRET_ACCESS_KEY": secret ?? server.secret].value)
    }

    /// A new bucket, and what is under a prefix of it.
    private func newBucket(
        _ name: String, prefix: String = "some/where", configure: (inout BucketOptions) -> Void = { _ in },
    ) async throws -> Bucket {
        var options = BucketOptions()
        configure(&options)
        let location = try BucketLocation(
            "s3://\(name)/\(prefix)", server: BucketLocation.Server(endpoint: server.endpoint))
        let bucket = Bucket(location, credentials: credentials(), options: options)
        try await bucket.make()
        return bucket
    }

    @Test(arguments: [0, 1, 5_000_000])
    func `A stored object is read again`(_ size: Int) async throws {
        let bucket = try await newBucket("round-trip")
        let bytes = noise(size)
        let hash = BlobHash(of: bytes)
        let key = "blobs/sha256/\(hash.hex.prefix(2))/\(hash)"
        try await withFile(bytes) { file in
            try await bucket.put(key, file, size: Int64(size), hash: hash, type: "image/png")
            // Again, as for a blob that another worker has stored.
            try await bucket.put(key, file, size: Int64(size), hash: hash, type: "image/png")
        }
        try await withFile(noise(99)) { file in
            let got = try await bucket.get(key, into: file, maxBytes: Int64(size), hash: hash)
            #expect(got == Int64(size))
            #expect(try contents(of: file) == bytes)
        }
        let info = try #require(try await bucket.info(of: key))
        #expect(info.size == Int64(size))
        let age = WallTime.current - (try #require(info.modified))
        #expect((-60_000...600_000).contains(age))
        try await bucket.delete([key])
        #expect(try await bucket.info(of: key) == nil)
        #expect(try await bucket.bytes(of: key) == nil)
    }

    @Test func `Bytes of another hash are refused and not stored`() async throws {
        let bucket = try await newBucket("wrong-bytes")
        try await withFile(noise(10_000)) { file in
            let error = await storageError {
                try await bucket.put("a", file, size: 10_000, hash: BlobHash(of: noise(10_000, seed: 2)))
            }
            #expect(error?.code == .wrongBytes)
            let stored = try await bucket.info(of: "a")
            #expect(stored == nil)
        }
    }

    @Test func `Only one of eight concurrent stores of an absent object succeeds`() async throws {
        let bucket = try await newBucket("race")
        for round in 0..<5 {
            let winners = try await withThrowingTaskGroup(of: Int?.self) { group in
                for number in 0..<8 {
                    group.addTask {
                        try await bucket.putIfAbsent("id-\(round)", Array("worker \(number)".utf8)) ? number : nil
                    }
                }
                return try await group.reduce(into: []) { if let number = $1 { $0.append(number) } }
            }
            #expect(winners.count == 1)
            let stored = try #require(try await bucket.bytes(of: "id-\(round)"))
            #expect(winners.map { Array("worker \($0)".utf8) } == [stored])
        }
    }

    @Test func `More keys than a page has are listed in order, and deleted`() async throws {
        let bucket = try await newBucket("many", prefix: "a")
        let other = try await newBucket("many", prefix: "ab")
        let keys = (0..<1_234).map { "x/\($0)" }
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for key in keys { group.addTask { try await bucket.putIfAbsent(key, Array(key.utf8)) } }
            for try await isStored in group { #expect(isStored) }
        }
        #expect(try await other.putIfAbsent("stays", [1]))
        #expect(try await allKeys(bucket) == keys.sorted())
        #expect(try await allKeys(bucket, "x/12") == keys.filter { $0.hasPrefix("x/12") }.sorted())
        let first = try await bucket.list()
        #expect(first.objects.count == 1_000)
        #expect(first.objects.allSatisfy { $0.size == Int64($0.key.utf8.count) && $0.modified != nil })
        try await bucket.delete(keys + ["never/there"])
        #expect(try await allKeys(bucket) == [])
        #expect(try await allKeys(other) == ["stays"])
    }

    private func allKeys(_ bucket: Bucket, _ prefix: String = "") async throws -> [String] {
        var keys: [String] = []
        var next: String?
        repeat {
            let page = try await bucket.list(prefix, continuing: next)
            keys += page.objects.map(\.key)
            next = page.next
        } while next != nil
        return keys
    }

    static let oddKeys = [
        "a b", "a+b", "a%20b", "a%2Bb", "a~b", "ä/ö", "日本語", "😀", "a&b<c>\"'", "a=b?c#d", "(!*')", "a:b@c,d;e",
        "a//b",
        "trailing/", "a\\b", "[]{}|^`", "$", " lead", "trail ", "e\u{301}",
    ]

    @Test func `Objects with odd keys are stored separately`() async throws {
        let bucket = try await newBucket("odd-keys", prefix: "vor satz+ä")
        for key in Self.oddKeys {
            #expect(try await bucket.putIfAbsent(key, Array(key.utf8)), "\(key)")
            #expect(try await bucket.bytes(of: key) == Array(key.utf8), "\(key)")
        }
        let order: (String, String) -> Bool = { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        #expect(
            try await allKeys(bucket).map { Array($0.utf8) } == Self.oddKeys.sorted(by: order).map { Array($0.utf8) })
        try await bucket.delete(Self.oddKeys)
        #expect(try await allKeys(bucket) == [])
    }

    @Test(arguments: ["plain", "a b/+~ä&=%41"])
    func `A signed URL is read by curl until it expires`(_ key: String) async throws {
        let bucket = try await newBucket("signed")
        _ = try await bucket.putIfAbsent(key, Array("for all".utf8))
        let url = try await bucket.presignedURL(of: key, seconds: 60)
        let old = Bucket(
            bucket.location, credentials: credentials(), options: BucketOptions(),
            now: { WallTime.current - 3_600_000 })
        try await withTemporaryDirectory { folder in
            let output = folder.appending("out").string
            let status = try ChildProcess.run("curl", ["-sS", "-f", "-o", output, url])
            #expect(status == 0)
            #expect(ProcessTable.contents(of: output) == Array("for all".utf8))
            let late = try await old.presignedURL(of: key, seconds: 60)
            #expect(try ChildProcess.run("curl", ["-s", "-f", "-o", "/dev/null", late]) == 22)
            let other = url.replacing("X-Amz-Expires=60", with: "X-Amz-Expires=61")
            #expect(try ChildProcess.run("curl", ["-s", "-f", "-o", "/dev/null", other]) == 22)
        }
    }

    @Test func `A bucket in the host's name answers, too`() async throws {
        _ = try await newBucket("host-style").putIfAbsent("a b", [1, 2])
        let endpoint = server.endpoint.replacing("127.0.0.1", with: "localhost")
        let location = try BucketLocation(
            "s3://host-style/some/where", server: BucketLocation.Server(endpoint: endpoint, isPathStyle: false))
        let bucket = Bucket(location, credentials: credentials())
        #expect(try await bucket.bytes(of: "a b") == [1, 2])
        #expect(try await bucket.list().objects.map(\.key) == ["a b"])
        #expect(try await bucket.presignedURL(of: "a b", seconds: 9).hasPrefix("http://host-style.localhost:"))
    }

    @Test(.enabled(if: S3Server.hasIPv6, "The machine has no ::1."))
    func `A server is reached by an IPv6 address`() async throws {
        _ = try await newBucket("ipv6").putIfAbsent("a", [1, 2])
        let endpoint = server.endpoint.replacing("127.0.0.1", with: "[::1]")
        let location = try BucketLocation("s3://ipv6/some/where", server: BucketLocation.Server(endpoint: endpoint))
        let bucket = Bucket(location, credentials: credentials())
        #expect(try await bucket.bytes(of: "a") == [1, 2])
    }

    @Test func `Headers of encryption and storage class are accepted`() async throws {
        let encrypted = try await newBucket("encrypted") {
            ($0.encryption, $0.encryptionKey, $0.storageClass) = ("aws:kms", "test-key", "STANDARD")
        }
        #expect(try await encrypted.putIfAbsent("a", Array("text".utf8)))
        #expect(try await encrypted.bytes(of: "a") == Array("text".utf8))
        let answer = try await encrypted.requests.send(
            BucketRequests.Call(method: "HEAD", key: "a", purpose: "look")
        ).answer
        #expect(answer.headers["x-amz-server-side-encryption"] == "aws:kms")
        let odd = try await newBucket("encrypted") { $0.storageClass = "NO_SUCH_CLASS" }
        #expect(await storageError { _ = try await odd.putIfAbsent("b", [1]) }?.code == .refused)
    }

    @Test func `Wrong keys are denied, and a missing bucket is an error`() async throws {
        let bucket = try await newBucket("denied")
        let wrong = Bucket(bucket.location, credentials: credentials(secret: "wrong"))
        for error in [
            await storageError { _ = try await wrong.list() }, await storageError { try await wrong.delete(["a"]) },
            await storageError { _ = try await wrong.putIfAbsent("a", [1]) },
            await storageError { _ = try await wrong.info(of: "a") },
        ] {
            #expect(error?.code == .denied)
        }
        let missing = Bucket(
            try BucketLocation("s3://never-made", server: BucketLocation.Server(endpoint: server.endpoint)),
            credentials: credentials())
        for error in [
            await storageError { _ = try await missing.list() },
            await storageError { _ = try await missing.bytes(of: "a") },
            await storageError { _ = try await missing.putIfAbsent("a", [1]) },
        ] {
            #expect(error?.code == .noBucket)
        }
        let late = Bucket(
            bucket.location, credentials: credentials(), options: BucketOptions(),
            now: { WallTime.current - 7_200_000 })
        let error = await storageError { _ = try await late.list() }
        #expect(error?.code == .denied)
        #expect(error?.message.contains("clock") == true, "\(error?.message ?? "")")
    }

    @Test func `An object of more bytes than the limit is an error, and the file stays empty`() async throws {
        let bucket = try await newBucket("large")
        _ = try await bucket.putIfAbsent("a", noise(5_001))
        try await withFile { file in
            let error = await storageError { _ = try await bucket.get("a", into: file, maxBytes: 5_000) }
            #expect(error?.code == .tooLarge)
            let left = try contents(of: file)
            #expect(left == [])
        }
    }
}
