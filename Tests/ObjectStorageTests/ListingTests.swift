import Core
import Synchronization
import TestSupport
import Testing

@testable import ObjectStorage

@Suite("Listings and deletions", .timeLimit(.minutes(5)))
struct ListingTests {
    private static func listing(_ content: String) -> LoopbackReply {
        .ok(
            Array(
                "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\(content)</ListBucketResult>".utf8
            ))
    }

    private static func object(_ key: String, size: String = "7") -> String {
        "<Contents><Key>\(key)</Key><LastModified>2026-11-26T09:30:00.000Z</LastModified><Size>\(size)</Size>"
            + "<Owner><ID>x</ID><DisplayName>Key</DisplayName></Owner></Contents>"
    }

    @Test func `A listing is read page by page, and its keys are without the prefix`() async throws {
        let last =
            "<IsTruncated>false</IsTruncated>" + Self.object("p/c%2Bd+e%C3%A4") + "<EncodingType>url</EncodingType>"
        let first =
            "<IsTruncated>true</IsTruncated><NextContinuationToken>1/+=</NextContinuationToken>"
            + Self.object("p/a+b") + Self.object("p/") + Self.object("other")
        let origin = try LoopbackOrigin { Self.listing($0.path.contains("continuation-token") ? last : first) }
        let bucket = try bucket(at: origin)
        let page = try await bucket.list("x y")
        let time = WallTime(milliseconds: 1_795_685_400_000)
        #expect(page.objects == [Bucket.Info(key: "a+b", size: 7, modified: time)])
        #expect(page.next == "1/+=")
        let next = try await bucket.list("x y", continuing: page.next)
        #expect(next.objects == [Bucket.Info(key: "c+d eä", size: 7, modified: time)])
        #expect(next.next == nil)
        #expect(
            origin.requests.map(\.path) == [
                "/bucket?encoding-type=url&list-type=2&prefix=p%2Fx%20y",
                "/bucket?continuation-token=1%2F%2B%3D&encoding-type=url&list-type=2&prefix=p%2Fx%20y",
            ])
    }

    private static func text(_ content: String) -> String {
        "<ListBucketResult><IsTruncated>false</IsTruncated>\(content)</ListBucketResult>"
    }

    static let broken = [
        "", "<html><body>Sign in</body></html>", "<ListBucketResult/>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        text("<Contents><Key>p/a</Key></Contents>"),
        text(object("p/a", size: "99999999999999999999")),
        text(object("p/a", size: "-1")),
        text("<EncodingType>url</EncodingType>" + object("p/%4")),
    ]

    @Test(arguments: broken)
    func `An incomplete listing is an error, and not an empty bucket`(_ text: String) async throws {
        let origin = try LoopbackOrigin { _ in .ok(Array(text.utf8)) }
        let bucket = try bucket(at: origin)
        #expect(await storageError { _ = try await bucket.list() }?.code == .refused)
    }

    @Test func `A server that gives the same page again is refused`() async throws {
        let origin = try LoopbackOrigin { _ in
            Self.listing("<IsTruncated>true</IsTruncated><NextContinuationToken>1</NextContinuationToken>")
        }
        let bucket = try bucket(at: origin)
        #expect(await storageError { _ = try await bucket.list("", continuing: "1") }?.code == .refused)
    }

    @Test func `Deletions are sent in thousands, with a checksum and escaped keys`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Array("<DeleteResult/>".utf8)) }
        let bucket = try bucket(at: origin)
        try await bucket.delete((0..<2_500).map { "a&<\($0)>" })
        try await bucket.delete([])
        #expect(origin.requests.map(\.path) == Array(repeating: "/bucket?delete=", count: 3))
        let keys = try origin.requests.flatMap { try #require(XMLReader.read($0.body)).all("Object").map { $0["Key"] } }
        #expect(keys == (0..<2_500).map { "p/a&<\($0)>" })
        let request = try #require(origin.requests.last)
        #expect(request.header("x-amz-checksum-sha256") == Bucket.checksum(BlobHash(of: request.body)))
        #expect(request.header("x-amz-content-sha256") == BlobHash(of: request.body).hex)
    }

    @Test(arguments: [
        (
            "<DeleteResult><Error><Key>p/a</Key><Code>AccessDenied</Code></Error></DeleteResult>",
            StorageError.Code.denied
        ),
        (
            "<DeleteResult><Error><Key>p/a</Key><Code>InternalError</Code><Message>M</Message></Error></DeleteResult>",
            .refused
        ), ("<html/>", .refused), ("", .refused),
    ])
    func `A deletion that fails in part is an error`(_ text: String, _ code: StorageError.Code) async throws {
        let origin = try LoopbackOrigin { _ in .ok(Array(text.utf8)) }
        let bucket = try bucket(at: origin)
        let error = await storageError { try await bucket.delete(["a", "b"]) }
        #expect(error?.code == code)
        if text.contains("p/a") { #expect(error?.message.contains("'p/a'") == true) }
    }

    @Test func `An absent object in the answer to a deletion is no error`() async throws {
        let text = "<DeleteResult><Error><Key>p/a</Key><Code>NoSuchKey</Code></Error></DeleteResult>"
        let origin = try LoopbackOrigin { _ in .ok(Array(text.utf8)) }
        try await bucket(at: origin).delete(["a"])
    }

    @Test func `Making a bucket that the caller owns already succeeds`() async throws {
        let origin = try LoopbackOrigin(script: [
            "/bucket": [
                .ok([]), failing(409, "BucketAlreadyOwnedByYou"), failing(409, "OperationAborted"),
                failing(409, "BucketAlreadyExists"),
            ]
        ])
        let bucket = try bucket(at: origin)
        try await bucket.make()
        try await bucket.make()
        #expect(await storageError { try await bucket.make() }?.code == .refused)
        #expect(origin.requests.count == 4)
    }
}
