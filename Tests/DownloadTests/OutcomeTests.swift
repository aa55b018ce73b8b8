import Core
import Download
import Hashing
import Synchronization
import SystemPackage
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15))) struct OutcomeTests {
    @Test(arguments: [0, 1, 16_384, 226_000])
    func aBodyIsDeliveredWithItsHeadersAndHash(size: Int) async throws {
        let body = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        let headers = [
            ("ETag", "\"1\""), ("Cache-Control", "max-age=1"), ("cache-control", "public"), ("Expires", "0"),
        ]
        let origin = try LoopbackOrigin { _ in .ok(body, type: "image/png", headers: headers) }
        try await withDownloader { downloader in
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/a.png#x")))
            let file = try #require(outcome.file)
            #expect(file.size == size)
            #expect(
                file.sha256 == SHA256.digest(of: body).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())
            #expect(try file.bytes() == body)
            let response = try #require(outcome.response)
            #expect(response.status == 200)
            #expect(response.finalURL == origin.url("/a.png"))
            #expect(response.contentType == "image/png")
            #expect(response.etag == "\"1\"")
            #expect(response.cacheControl == "max-age=1, public")
            #expect(response.expires == "0")
            #expect(response.primaryAddress == "127.0.0.1")
            #expect(response.bytesReceived == size)
            #expect(response.timings.total > .zero)
            #expect(downloader.counts.bytes == size)
        }
    }

    @Test(arguments: [201, 203, 204, 299]) func aStatusOf2xxIsAccepted(status: Int) async throws {
        let origin = try LoopbackOrigin { _ in .status(status) }
        try await withDownloader { downloader in
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/")))
            #expect(outcome.file?.size == 0)
            #expect(outcome.response?.status == status)
        }
    }

    @Test(arguments: [300, 304, 400, 401, 404, 418, 429, 500, 503, 599]) func aStatusOutsideOf2xxIsAFailureClass(
        status: Int
    ) async throws {
        let origin = try LoopbackOrigin { _ in .status(status, headers: [("Retry-After", "7")], body: [1, 2, 3]) }
        try await withDownloader { downloader in
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/")))
            #expect(outcome.code == .http(status))
            #expect(outcome.failure?.retryAfter == .seconds(7))
            #expect(outcome.failure?.message == "127.0.0.1 answered with status \(status).")
        }
    }

    @Test func aConditionalRequestCanBeAnsweredWith304() async throws {
        let origin = try LoopbackOrigin { request in
            request.header("If-None-Match") == "\"1\"" && request.header("If-Modified-Since") == "yesterday"
                ? .status(304, headers: [("ETag", "\"1\"")]) : .ok([1])
        }
        try await withDownloader { downloader in
            var request = DownloadRequest(url: origin.url("/"), etag: "\"1\"", lastModified: "yesterday")
            guard case .notModified(let response) = await downloader.download(request) else {
                Issue.record("not a 304")
                return
            }
            #expect(response.etag == "\"1\"")
            request.etag = "\"2\""
            #expect(await downloader.download(request).file?.size == 1)
        }
    }

    @Test func aRequestHasItsHeadersAndCredentials() async throws {
        let origin = try LoopbackOrigin { _ in .ok([1]) }
        try await withDownloader { downloader in
            let url = "http://me:secret@127.0.0.1:\(origin.port)/"
            let headers = [
                (name: "X-Key", value: "1"), (name: "Accept", value: "image/webp"), (name: "X-Empty", value: ""),
            ]
            _ = await downloader.download(DownloadRequest(url: url, headers: headers))
            let request = try #require(origin.requests.first)
            #expect(request.method == "GET")
            #expect(request.header("X-Key") == "1")
            #expect(request.header("X-Empty") == "")
            #expect(request.header("Accept") == "image/webp")
            #expect(request.header("Authorization") == "Basic bWU6c2VjcmV0")
            #expect(request.header("User-Agent") == "PrefetchWorker/1")
            #expect(request.header("Cookie") == nil)
        }
    }

    /// Headers that the configuration sets, and that requests replace or remove.
    @Test func aRequestReplacesAndRemovesHeadersOfTheConfiguration() async throws {
        let origin = try LoopbackOrigin { $0.path == "/away" ? .redirect(to: "/here") : .ok([1]) }
        try await withDownloader(configure: {
            $0.headers = [
                (name: "Referer", value: "https://a.example/"), (name: "Accept", value: "image/avif,image/*"),
            ]
        }) { downloader in
            let own: [[(name: String, value: String)]] = [
                [], [(name: "referer", value: "other")], [(name: "REFERER", value: ""), (name: "Accept", value: "")],
            ]
            for headers in own {
                _ = await downloader.download(DownloadRequest(url: origin.url("/away"), headers: headers))
            }
            let seen = origin.requests.map { [$0.header("Referer"), $0.header("Accept")] }
            #expect(seen[0] == ["https://a.example/", "image/avif,image/*"])
            #expect(seen[1] == seen[0])
            #expect(seen[2] == ["other", "image/avif,image/*"])
            #expect(seen[4] == [nil, nil])
        }
    }

    @Test(arguments: [
        ("X\r\nY", "1"), ("X", "1\r\nHost: evil"), ("", "1"), ("X Y", "1"), ("X", "\u{0}"), ("content-length", "5"),
        ("Transfer-Encoding", "chunked"), ("Range", "bytes=0-9"), ("If-None-Match", "\"1\""), ("Connection", "close"),
    ])
    func headersThatSmuggleLinesAreRefused(name: String, value: String) async throws {
        let origin = try LoopbackOrigin { _ in .ok([1]) }
        try await withDownloader { downloader in
            let request = DownloadRequest(url: origin.url("/"), headers: [(name, value)])
            #expect(await downloader.download(request).code == .delegate)
            #expect(origin.requests.isEmpty)
        }
    }

    @Test func wrongCredentialsEndInOneFailure() async throws {
        let origin = try LoopbackOrigin { _ in .status(401, headers: [("WWW-Authenticate", "Basic realm=\"x\"")]) }
        try await withDownloader { downloader in
            let url = "http://me:secret@127.0.0.1:\(origin.port)/"
            let outcome = await downloader.download(DownloadRequest(url: url))
            #expect(outcome.code == .http(401))
            #expect(outcome.failure?.message.contains("secret") == false)
            #expect(outcome.response?.finalURL == origin.url("/"))
            #expect(origin.requests.count == 1)
        }
    }

    @Test func theTransferStopsWhenTheInspectorRefusesTheBody() async throws {
        let origin = try LoopbackOrigin { _ in .chunked(totalBytes: 1 << 30) }
        let seen = Mutex(0)
        let inspect: @Sendable (UnsafeRawBufferPointer) -> BodyVerdict = { bytes in
            seen.withLock { $0 = bytes.count }
            return bytes.count < 40_000 ? .undecided : .refuse(Failure(.notAnImage, "No."))
        }
        try await withDownloader(inspect: inspect) { downloader in
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/")))
            #expect(outcome.code == .notAnImage)
            #expect(seen.withLock { $0 } <= 65_536)
        }
    }

    /// The length of an encoded body differs from the length of the decoded one.
    @Test func progressTellsTheLengthOfTheDecodedBody() async throws {
        let packed = try gzip(of: 1 << 20)
        let origin = try LoopbackOrigin { request in
            request.path == "/packed"
                ? .ok(packed, headers: [("Content-Encoding", "gzip")]) : .ok([UInt8](repeating: 1, count: 1 << 20))
        }
        try await withDownloader { downloader in
            for (path, expected) in [("/packed", nil), ("/plain", 1 << 20)] as [(String, Int64?)] {
                let looks = Mutex<[(received: Int64, expected: Int64?)]>([])
                var request = DownloadRequest(url: origin.url(path))
                request.watch = BodyWatch(every: .zero) { part in
                    looks.withLock { $0.append((part.received, part.expected)) }
                    // Nothing was written to it here.
                    try? part.file.close()
                }
                #expect(await downloader.download(request).file?.size == 1 << 20)
                let seen = looks.withLock { $0 }
                #expect(!seen.isEmpty)
                #expect(seen.allSatisfy { $0.expected == expected && $0.received <= 1 << 20 })
            }
        }
    }

    @Test func aBodyOnWhichTheInspectorNeverDecidesIsAccepted() async throws {
        let origin = try LoopbackOrigin { _ in .chunked(totalBytes: 200_000) }
        let most = Mutex(0)
        let inspect: @Sendable (UnsafeRawBufferPointer) -> BodyVerdict = { bytes in
            most.withLock { $0 = max($0, bytes.count) }
            return .undecided
        }
        try await withDownloader(inspect: inspect) { downloader in
            #expect(await downloader.download(DownloadRequest(url: origin.url("/"))).file?.size == 200_000)
            #expect(most.withLock { $0 } == 65_536)
        }
    }

    @Test(arguments: [Errno.noSpace, .ioError]) func aFailureToMakeTheFileIsADiskFailure(errno: Errno) async throws {
        let origin = try LoopbackOrigin { _ in .ok([1]) }
        try await withDownloader(makeFile: { throw errno }) { downloader in
            #expect(
                await downloader.download(DownloadRequest(url: origin.url("/"))).code
                    == (errno == .noSpace ? .diskFull : .diskError))
        }
    }

    @Test func aDiskThatFillsDuringTheTransferIsADiskFailure() async throws {
        let origin = try LoopbackOrigin { _ in .ok([1]) }
        try await withDownloader(makeFile: { try FileDescriptor.open("/dev/full", .readWrite) }) { downloader in
            #expect(await downloader.download(DownloadRequest(url: origin.url("/"))).code == .diskFull)
        }
    }
}
