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

    private var contract: BucketContract { BucketContract(server: server) }

    @Test(arguments: [0, 1, 5_000_000])
    func `A stored object is read again`(_ size: Int) async throws { try await contract.readsWhatWasStored(size: size) }

    @Test func `Bytes of another hash are refused and not stored`() async throws {
        try await contract.refusesBytesOfAnotherHash()
    }

    @Test func `Only one of eight concurrent stores of an absent object succeeds`() async throws {
        try await contract.letsOneOfEightStore()
    }

    @Test func `More keys than a page has are listed in order, and deleted`() async throws {
        try await contract.listsAndDeletesManyKeys()
    }

    @Test func `Objects with odd keys are stored separately`() async throws { try await contract.storesOddKeys() }

    @Test func `Wrong keys are denied, and a missing bucket is an error`() async throws {
        try await contract.deniesWrongKeys()
    }

    @Test(arguments: ["plain", "a b/+~ä&=%41"])
    func `A signed URL is read by curl until it expires`(_ key: String) async throws {
        let bucket = try await contract.newBucket("signed")
        _ = try await bucket.putIfAbsent(key, Array("for all".utf8))
        let url = try await bucket.presignedURL(of: key, seconds: 60)
        let old = Bucket(
            bucket.location, credentials: contract.credentials(), options: BucketOptions(),
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
        _ = try await contract.newBucket("host-style").putIfAbsent("a b", [1, 2])
        let endpoint = server.endpoint.replacing("127.0.0.1", with: "localhost")
        let location = try BucketLocation(
            "s3://host-style/some/where", server: BucketLocation.Server(endpoint: endpoint, isPathStyle: false))
        let bucket = Bucket(location, credentials: contract.credentials())
        #expect(try await bucket.bytes(of: "a b") == [1, 2])
        #expect(try await bucket.list().objects.map(\.key) == ["a b"])
        #expect(try await bucket.presignedURL(of: "a b", seconds: 9).hasPrefix("http://host-style.localhost:"))
    }

    @Test(.enabled(if: S3Server.hasIPv6, "The machine has no ::1."))
    func `A server is reached by an IPv6 address`() async throws {
        _ = try await contract.newBucket("ipv6").putIfAbsent("a", [1, 2])
        let endpoint = server.endpoint.replacing("127.0.0.1", with: "[::1]")
        let location = try BucketLocation("s3://ipv6/some/where", server: BucketLocation.Server(endpoint: endpoint))
        let bucket = Bucket(location, credentials: contract.credentials())
        #expect(try await bucket.bytes(of: "a") == [1, 2])
    }

    @Test func `Headers of encryption and storage class are accepted`() async throws {
        let encrypted = try await contract.newBucket("encrypted") {
            ($0.encryption, $0.encryptionKey, $0.storageClass) = ("aws:kms", "test-key", "STANDARD")
        }
        #expect(try await encrypted.putIfAbsent("a", Array("text".utf8)))
        #expect(try await encrypted.bytes(of: "a") == Array("text".utf8))
        let answer = try await encrypted.requests.send(
            BucketRequests.Call(method: "HEAD", key: "a", purpose: "look")
        ).answer
        #expect(answer.headers["x-amz-server-side-encryption"] == "aws:kms")
        let odd = try await contract.newBucket("encrypted") { $0.storageClass = "NO_SUCH_CLASS" }
        #expect(await storageError { _ = try await odd.putIfAbsent("b", [1]) }?.code == .refused)
    }

    @Test func `An object of more bytes than the limit is an error, and the file stays empty`() async throws {
        let bucket = try await contract.newBucket("large")
        _ = try await bucket.putIfAbsent("a", noise(5_001))
        try await withFile { file in
            let error = await storageError { _ = try await bucket.get("a", into: file, maxBytes: 5_000) }
            #expect(error?.code == .tooLarge)
            let left = try contents(of: file)
            #expect(left == [])
        }
    }
}
