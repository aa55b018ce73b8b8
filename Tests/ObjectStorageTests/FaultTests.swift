import Core
import SystemPackage
import TestSupport
import Testing

@testable import ObjectStorage

/// Each fault of a server ends in its error, soon.
@Suite("Faults", .timeLimit(.minutes(15)))
struct FaultTests {
    static let body = noise(100_000)

    struct Passing: Sendable, CustomTestStringConvertible {
        let name: String
        let reply: LoopbackReply
        var testDescription: String { name }
    }

    static let passing = [
        Passing(name: "503", reply: .status(503)), Passing(name: "500", reply: failing(500, "InternalError")),
        Passing(name: "SlowDown", reply: failing(503, "SlowDown", "Please reduce your request rate.")),
        Passing(name: "429", reply: .status(429, headers: [("Retry-After", "0")])),
        Passing(name: "502 of a proxy", reply: .status(502, body: Array("<html>Bad gateway</html>".utf8))),
        Passing(name: "RequestTimeout", reply: failing(400, "RequestTimeout")),
        Passing(name: "closed without an answer", reply: .noReply),
        Passing(name: "closed within the body", reply: .closeEarly(afterBytes: 1_000, of: 100_000)),
        Passing(name: "closed before the body", reply: .closeEarly(afterBytes: 0, of: 100_000)),
        Passing(name: "reset", reply: .reset(afterBytes: 70_000, of: 100_000)),
        Passing(name: "cut chunks", reply: .chunkedCut(bytes: 1_000)),
        Passing(name: "no length", reply: .raw("HTTP/1.1 200 OK\r\n\r\n", body: noise(100_000))),
        Passing(name: "garbage", reply: .garbage),
        Passing(name: "endless headers", reply: .hugeHeaders(bytes: 1 << 20)),
    ]

    @Test(arguments: passing)
    func `A passing fault is retried, and the file has the right bytes only`(_ fault: Passing) async throws {
        let origin = try LoopbackOrigin(script: ["/bucket/p/a": [fault.reply, fault.reply, .ok(Self.body)]])
        let bucket = try bucket(at: origin)
        try await withFile(noise(200_000, seed: 9)) { file in
            try file.seek(offset: 77, from: .start)
            let size = try await bucket.get("a", into: file, maxBytes: 1 << 20, hash: BlobHash(of: Self.body))
            #expect(size == 100_000)
            #expect(try contents(of: file) == Self.body)
            #expect(try file.seek(offset: 0, from: .current) == 0)
        }
        #expect(origin.requestCount("/bucket/p/a") == 3)
    }

    @Test(arguments: passing)
    func `A lasting fault ends after the last try, and the file is empty`(_ fault: Passing) async throws {
        let origin = try LoopbackOrigin { _ in fault.reply }
        let bucket = try bucket(at: origin)
        try await withFile { file in
            let error = await storageError { _ = try await bucket.get("a", into: file, maxBytes: 1 << 20) }
            #expect(error?.code == .unreachable)
            #expect(error?.message.hasPrefix("s3://bucket/p can't read a: ") == true)
            let left = try contents(of: file)
            #expect(left == [])
        }
        #expect(origin.requestCount("/bucket/p/a") == 4)
    }

    struct Lasting: Sendable, CustomTestStringConvertible {
        let reply: LoopbackReply
        let code: StorageError.Code
        var words: [String] = []
        var testDescription: String { "\(code) \(words)" }
    }

    static let lasting = [
        Lasting(reply: failing(403, "AccessDenied"), code: .denied, words: ["AccessDenied", "403"]),
        Lasting(reply: failing(403, "SignatureDoesNotMatch", "Check it."), code: .denied, words: ["Check it."]),
        Lasting(reply: failing(403, "RequestTimeTooSkewed"), code: .denied, words: ["clock"]),
        Lasting(reply: failing(404, "NoSuchBucket"), code: .noBucket, words: ["no bucket 'bucket'"]),
        Lasting(reply: failing(400, "InvalidRequest"), code: .refused), Lasting(reply: .status(501), code: .refused),
        Lasting(reply: .status(400, body: Array("<html>".utf8)), code: .refused, words: ["no reason given"]),
        Lasting(reply: failing(400, "BadDigest"), code: .wrongBytes),
        Lasting(reply: failing(400, "XAmzContentSHA256Mismatch"), code: .wrongBytes),
        Lasting(
            reply: failing(301, "PermanentRedirect", headers: [("x-amz-bucket-region", "eu-central-1")]),
            code: .wrongRegion, words: ["'eu-central-1'", "'us-east-1'"]),
        Lasting(
            reply: .status(
                307, headers: [("x-amz-bucket-region", "eu-west-3"), ("Location", "http://127.0.0.1:1/elsewhere")]),
            code: .wrongRegion, words: ["'eu-west-3'"]),
        Lasting(
            reply: failing(400, "AuthorizationHeaderMalformed", more: "<Region>ap-south-1</Region>"),
            code: .wrongRegion, words: ["'ap-south-1'"]),
        Lasting(
            reply: failing(301, "PermanentRedirect", headers: [("x-amz-bucket-region", "a b")]), code: .refused),
        Lasting(
            reply: .redirect(to: "http://127.0.0.1:1/elsewhere?X-Amz-Signature=1"), code: .refused,
            words: ["302", "points to http://127.0.0.1:1/elsewhere)"]),
    ]

    @Test(arguments: lasting)
    func `A permanent error is not retried`(_ fault: Lasting) async throws {
        let origin = try LoopbackOrigin { _ in fault.reply }
        let bucket = try bucket(at: origin)
        let error = await storageError { _ = try await bucket.bytes(of: "a") }
        #expect(error?.code == fault.code)
        for word in fault.words { #expect(error?.message.contains(word) == true, "\(error?.message ?? "")") }
        #expect(origin.requests.count == 1)
    }

    @Test func `A wrong region is recognised in an answer without a body, too`() async throws {
        let head = "HTTP/1.1 301 Moved\r\nx-amz-bucket-region: eu-central-1\r\nContent-Length: 0\r\n\r\n"
        let origin = try LoopbackOrigin { _ in .raw(head) }
        let bucket = try bucket(at: origin)
        #expect(await storageError { _ = try await bucket.info(of: "a") }?.code == .wrongRegion)
    }

    @Test func `A silent server is given up after the timeout`() async throws {
        let origin = try LoopbackOrigin { _ in .silence }
        let bucket = try bucket(at: origin) { ($0.totalTimeout, $0.tries) = (300, 2) }
        let started = ContinuousClock.now
        #expect(await storageError { _ = try await bucket.bytes(of: "a") }?.code == .unreachable)
        #expect(ContinuousClock.now - started < .seconds(60))
        #expect(origin.requests.count == 2)
    }

    @Test(arguments: [LoopbackReply.stall(afterBytes: 1_000), .drip(bytesPerSecond: 100, of: 100_000)])
    func `A stalled or very slow transfer is given up`(_ reply: LoopbackReply) async throws {
        let origin = try LoopbackOrigin { _ in reply }
        let bucket = try bucket(at: origin) { ($0.silenceTimeout, $0.tries) = (1, 1) }
        let error = await storageError { _ = try await bucket.bytes(of: "a") }
        #expect(error?.code == .unreachable)
        #expect(error?.message.contains("too slow") == true, "\(error?.message ?? "")")
    }

    @Test func `A port without a listener is unreachable`() async throws {
        let port = try LoopbackOrigin.unusedPort()
        let location = try BucketLocation("s3://bucket", server: .init(endpoint: "http://127.0.0.1:\(port)"))
        var options = BucketOptions()
        (options.tries, options.shortestPause, options.longestPause) = (3, 1, 2)
        let bucket = Bucket(location, credentials: testCredentials, options: options)
        let error = await storageError { _ = try await bucket.list() }
        #expect(error?.code == .unreachable)
    }

    @Test(arguments: [
        LoopbackReply.ok(noise(5_001)), .closeEarly(afterBytes: 0, of: 1 << 40), .chunked(totalBytes: 1 << 30),
        .closeEarly(afterBytes: 10, of: Int.max),
    ])
    func `A body of more bytes than the limit ends the transfer`(_ reply: LoopbackReply) async throws {
        let origin = try LoopbackOrigin { _ in reply }
        let bucket = try bucket(at: origin) { $0.tries = 1 }
        try await withFile { file in
            let error = await storageError { _ = try await bucket.get("a", into: file, maxBytes: 5_000) }
            // Without a byte of the body there is nothing to refuse before the connection ends.
            #expect(error?.code == .tooLarge || error?.code == .unreachable)
            let left = try contents(of: file)
            #expect(left == [])
        }
        #expect(origin.requests.count == 1)
    }

    @Test func `A body of exactly the limit is accepted, and an empty body, too`() async throws {
        let origin = try LoopbackOrigin(script: ["/bucket/p/a": [.ok(noise(5_000))], "/bucket/p/b": [.ok([])]])
        let bucket = try bucket(at: origin)
        try await withFile(noise(10)) { file in
            let size = try await bucket.get("a", into: file, maxBytes: 5_000)
            #expect(size == 5_000)
            #expect(try contents(of: file) == noise(5_000))
            #expect(try await bucket.get("b", into: file, maxBytes: 0) == 0)
            #expect(try contents(of: file) == [])
        }
    }

    @Test func `Bytes of another hash are requested once more, and never delivered`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(noise(5_000, seed: 2)) }
        let bucket = try bucket(at: origin)
        try await withFile { file in
            let hash = BlobHash(of: noise(5_000))
            let error = await storageError { _ = try await bucket.get("a", into: file, maxBytes: 5_000, hash: hash) }
            #expect(error?.code == .wrongBytes)
            let left = try contents(of: file)
            #expect(left == [])
        }
        #expect(origin.requests.count == 2)
    }

    @Test func `An error's text is bounded`() async throws {
        let text = Array("<Error><Code>Odd</Code><Message>".utf8) + [UInt8](repeating: 0x78, count: 1 << 20)
        let origin = try LoopbackOrigin { _ in .status(400, body: text) }
        let bucket = try bucket(at: origin)
        let error = await storageError { _ = try await bucket.bytes(of: "a") }
        #expect(error?.code == .refused)
        #expect((error?.message.count ?? 0) <= 500)
    }
}
