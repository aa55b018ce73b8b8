import Core
import SystemPackage
import TestSupport
import Testing

@testable import ObjectStorage

/// What every S3 server has to do for a cache. Each server's suite runs all of it.
struct BucketContract {
    let server: S3Server

    func credentials(secret: String? = nil) -> CredentialSettings {
        CredentialSettings(
            environment: ["AWS_ACCESS_KEY_ID": server.key, "AWS_SECRET_ACCESS_KEY": secret ?? server.secret].value)
    }

    /// A new bucket, and what is under a prefix of it.
    func newBucket(
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

    func readsWhatWasStored(size: Int) async throws {
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

    func refusesBytesOfAnotherHash() async throws {
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

    func letsOneOfEightStore() async throws {
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

    func listsAndDeletesManyKeys() async throws {
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

    func allKeys(_ bucket: Bucket, _ prefix: String = "") async throws -> [String] {
        var keys: [String] = []
        var next: String?
        repeat {
            let page = try await bucket.list(prefix, continuing: next)
            keys += page.objects.map(\.key)
            next = page.next
        } while next != nil
        return keys
    }

    private static let oddKeys = [
        "a b", "a+b", "a%20b", "a%2Bb", "a~b", "ä/ö", "日本語", "😀", "a&b<c>\"'", "a=b?c#d", "(!*')", "a:b@c,d;e",
        "a//b",
        "trailing/", "a\\b", "[]{}|^`", "$", " lead", "trail ", "e\u{301}",
    ]

    func storesOddKeys() async throws {
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

    func deniesWrongKeys() async throws {
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
}
