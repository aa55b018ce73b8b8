import Core
import Testing

@testable import ObjectStorage

/// Amazon's published examples.
///
/// See https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html and
/// https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
@Suite("Signatures", .timeLimit(.minutes(5)))
struct SignatureTests {
    static let empty = BucketRequests.emptyHash

    private static func signature(token: String? = nil) throws -> Signature {
        Signature(
            credentials: try Credentials(
                keyID: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", token: token),
            region: "us-east-1", time: WallTime(milliseconds: 1_369_353_600_000))
    }

    private static func parts(
        _ method: String, _ path: String, _ query: [(name: String, value: String)] = [],
        _ headers: [String: String] = [:], payload: String = empty,
    ) -> Signature.Parts {
        Signature.Parts(
            method: method, host: "examplebucket.s3.amazonaws.com", path: path, query: query, headers: headers,
            payload: payload)
    }

    struct Example: Sendable, CustomTestStringConvertible {
        let name: String
        let parts: @Sendable () -> Signature.Parts
        let names: String
        let signature: String
        var testDescription: String { name }
    }

    static let examples = [
        Example(
            name: "GET of a part", parts: { parts("GET", "/test.txt", [], ["range": "bytes=0-9"]) },
            names: "host;range;x-amz-content-sha256;x-amz-date",
            signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        Example(
            name: "PUT",
            parts: {
                parts(
                    "PUT", "/" + PercentEncoding.path("test$file.text"), [],
                    ["date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"],
                    payload: "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072")
            }, names: "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
            signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        Example(
            name: "GET of the lifecycle", parts: { parts("GET", "/", [("lifecycle", "")]) },
            names: "host;x-amz-content-sha256;x-amz-date",
            signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        Example(
            name: "a listing whose query is not sorted",
            parts: { parts("GET", "/", [("prefix", "J"), ("max-keys", "2")]) },
            names: "host;x-amz-content-sha256;x-amz-date",
            signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ]

    @Test(arguments: examples)
    func `A request is signed as published`(_ example: Example) throws {
        let lines = try Self.signature().headers(example.parts())
        let credential = "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"
        #expect(
            lines.contains(
                "authorization: AWS4-HMAC-SHA256 Credential=\(credential),"
                    + "SignedHeaders=\(example.names),Signature=\(example.signature)"))
        #expect(lines.contains("host: examplebucket.s3.amazonaws.com"))
        #expect(lines.contains("x-amz-date: 20130524T000000Z"))
    }

    @Test func `A URL is signed as published`() throws {
        let query = try Self.signature().presignedQuery(Self.parts("GET", "/test.txt"), seconds: 86_400)
        #expect(
            query == "X-Amz-Algorithm=AWS4-HMAC-SHA256"
                + "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
                + "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
                + "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")
    }

    @Test(arguments: [(-5, 1), (0, 1), (60, 60), (604_800, 604_800), (Int.max, 604_800)])
    func `A signed URL lasts a second to seven days`(_ asked: Int, _ got: Int) throws {
        let query = try Self.signature().presignedQuery(Self.parts("GET", "/a"), seconds: asked)
        #expect(query.contains("X-Amz-Expires=\(got)&"))
    }

    @Test func `A token of a role is signed, in headers and in URLs`() throws {
        let signature = try Self.signature(token: "a/token+of=it")
        let lines = signature.headers(Self.parts("GET", "/a"))
        #expect(lines.contains("x-amz-security-token: a/token+of=it"))
        #expect(
            lines.contains { $0.contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,") })
        let query = signature.presignedQuery(Self.parts("GET", "/a"), seconds: 60)
        #expect(query.contains("&X-Amz-Security-Token=a%2Ftoken%2Bof%3Dit&"))
    }

    @Test func `Spaces around and within a header's value don't change its signature`() throws {
        let (tidy, loose) = (["content-type": "a b"], ["content-type": "  a   b "])
        func signed(_ headers: [String: String]) throws -> String? {
            try Self.signature().headers(Self.parts("GET", "/a", [], headers)).first { $0.hasPrefix("authorization") }
        }
        #expect(try signed(tidy) == signed(loose))
    }

    @Test(arguments: [
        ("aZ09-._~", "aZ09-._~"), ("a b", "a%20b"), ("a+b", "a%2Bb"), ("ä", "%C3%A4"), ("a/b", "a/b"),
        ("!*'()", "%21%2A%27%28%29"), ("%41", "%2541"), ("😀", "%F0%9F%98%80"),
    ])
    func `A path is encoded once`(_ text: String, _ encoded: String) {
        #expect(PercentEncoding.path(text) == encoded)
        #expect(PercentEncoding.query(text) == encoded.replacing("/", with: "%2F"))
        #expect(PercentEncoding.decoded(encoded) == text)
    }

    @Test(arguments: ["%", "%4", "%4g", "%+1", "%C3"])
    func `An incomplete percent encoding is not decoded`(_ text: String) {
        #expect(PercentEncoding.decoded(text) == nil)
    }

    @Test func `A query is sorted by its encoded names, then by its values`() {
        #expect(
            Signature.encoded([("b", "2"), ("a", "z"), ("B", ""), ("a", "ä"), ("a-", "1"), ("ä", "0")])
                == "%C3%A4=0&B=&a=%C3%A4&a=z&a-=1&b=2")
    }
}
