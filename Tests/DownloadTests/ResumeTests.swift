import Core
import Synchronization
import TestSupport
import Testing

@testable import Download

/// Received bytes aren't requested again if a validator shows that they are unchanged.
@Suite(.timeLimit(.minutes(15))) struct ResumeTests {
    private static let body = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }

    /// Breaks off after 120,000 bytes the first time, and then answers as `then` says.
    private func origin(
        etag: String = "\"v1\"", headers: [(name: String, value: String)] = [],
        then: @escaping @Sendable (LoopbackOrigin.Request) -> LoopbackReply,
    ) throws -> LoopbackOrigin {
        try LoopbackOrigin { request in
            guard request.header("Range") == nil, request.path == "/a" else { return then(request) }
            return .broken(
                Array(Self.body.prefix(120_000)), of: Self.body.count, headers: [("ETag", etag)] + headers)
        }
    }

    private func part(_ request: LoopbackOrigin.Request, etag: String = "\"v1\"") -> LoopbackReply {
        let first = Int(request.header("Range")?.dropFirst(6).dropLast() ?? "") ?? 0
        return .status(
            206,
            headers: [
                ("ETag", etag), ("Content-Range", "bytes \(first)-\(Self.body.count - 1)/\(Self.body.count)"),
            ], body: Array(Self.body[first...]))
    }

    @Test func aRetryResumesWhereTheLastTryEnded() async throws {
        let origin = try origin { part($0) }
        try await withDownloader { downloader in
            #expect(await downloader.download(DownloadRequest(url: origin.url("/a"))).code == .connectionLost)
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/a")))
            let bytes = try outcome.file?.bytes()
            #expect(bytes == Self.body)
            #expect(outcome.response?.bytesReceived ?? 0 <= Int64(Self.body.count))
        }
        let second = try #require(origin.requests.last)
        #expect(second.header("Range")?.hasPrefix("bytes=") == true)
        #expect(second.header("If-Range") == "\"v1\"")
        #expect(second.header("Accept-Encoding") == nil)
    }

    enum Nothing: CaseIterable { case busy, noReply, silence }

    /// A try without a body keeps the partial body for the next try.
    @Test(arguments: Nothing.allCases) func aPartialBodyOutlastsATryWithoutABody(_ kind: Nothing) async throws {
        let isBack = Atomic(false)
        let origin = try origin { request in
            if isBack.load(ordering: .acquiring) { return part(request) }
            return switch kind {
            case .busy: .status(503)
            case .noReply: .noReply
            case .silence: .silence
            }
        }
        try await withDownloader { downloader in
            #expect(await downloader.download(DownloadRequest(url: origin.url("/a"))).code == .connectionLost)
            for number in 1...2 {
                let attempt = Task { await downloader.download(DownloadRequest(url: origin.url("/a"))) }
                #expect(await eventually { origin.requests.count > number })
                if kind == .silence { attempt.cancel() }
                #expect(await attempt.value.file == nil)
            }
            isBack.store(true, ordering: .releasing)
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/a")))
            let bytes = try outcome.file?.bytes()
            #expect(bytes == Self.body)
        }
        #expect(origin.requests.map { $0.header("Range") != nil } == [false, true, true, true])
    }

    /// The received bytes never exceed the length, whether the origin resumes or begins anew.
    @Test(arguments: [true, false]) func progressCountsThePartialBodyOnlyIfItIsResumed(_ goesOn: Bool) async throws {
        let origin = try origin { request in
            let first = Int(request.header("Range")?.dropFirst(6).dropLast() ?? "") ?? 0
            let (count, etag) = (Self.body.count, ("ETag", "\"v1\""))
            guard goesOn else { return .slowly(Self.body, pieces: 4_000, pause: 200) }
            let range = ("Content-Range", "bytes \(first)-\(count - 1)/\(count)")
            return .slowly(Array(Self.body[first...]), pieces: 4_000, pause: 200, code: 206, headers: [etag, range])
        }
        try await withDownloader { downloader in
            _ = await downloader.download(DownloadRequest(url: origin.url("/a")))
            let second = Task { await downloader.download(DownloadRequest(url: origin.url("/a"), id: 7)) }
            #expect(await eventually { downloader.progress.first?.received ?? 0 > 0 })
            let progress = try #require(downloader.progress.first)
            #expect(progress.expected == Int64(Self.body.count))
            #expect(progress.received < Self.body.count)
            #expect((progress.received > 16 << 10) == goesOn)
            second.cancel()
            _ = await second.value
        }
    }

    @Test func aRequestForTheBeginningOnlyDoesNotUseAPartialBody() async throws {
        let origin = try origin { part($0) }
        try await withDownloader { downloader in
            var request = DownloadRequest(url: origin.url("/a"))
            #expect(await downloader.download(request).code == .connectionLost)
            request.takesBeginning = true
            request.maxBodyBytes = 20_000
            let bytes = try await downloader.download(request).file?.bytes()
            #expect(bytes == Array(Self.body.prefix(20_000)))
            // What there was is still there for one that wants it.
            #expect(try await downloader.download(DownloadRequest(url: origin.url("/a"))).file?.bytes() == Self.body)
        }
    }

    @Test func aChangedBodyIsReceivedWhole() async throws {
        let other = [UInt8](repeating: 9, count: 50_000)
        let origin = try origin { _ in .status(200, headers: [("ETag", "\"v2\"")], body: other) }
        try await withDownloader { downloader in
            _ = await downloader.download(DownloadRequest(url: origin.url("/a")))
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/a")))
            let bytes = try outcome.file?.bytes()
            #expect(bytes == other)
        }
    }

    @Test(arguments: ["W/\"v1\"", "v1", ""]) func aBodyWithAWeakValidatorIsNotResumed(_ etag: String) async throws {
        let origin = try origin(etag: etag) { part($0) }
        try await withDownloader { downloader in
            for _ in 0..<2 { _ = await downloader.download(DownloadRequest(url: origin.url("/a"))) }
        }
        #expect(origin.requests.allSatisfy { $0.header("Range") == nil })
    }

    @Test func anEncodedBodyIsNotResumed() async throws {
        let origin = try origin(headers: [("Content-Encoding", "identity")]) { part($0) }
        try await withDownloader { downloader in
            for _ in 0..<2 { _ = await downloader.download(DownloadRequest(url: origin.url("/a"))) }
        }
        #expect(origin.requests.allSatisfy { $0.header("Range") == nil })
    }

    /// Another part, another version, or no such part: no mixed bytes are delivered, and the next try is fresh.
    @Test(arguments: 0..<4) func aWrongAnswerToARangeRequestFails(_ kind: Int) async throws {
        let origin = try origin { request in
            switch kind {
            case 0: part(request, etag: "\"v2\"")
            case 1:
                .status(206, headers: [("ETag", "\"v1\""), ("Content-Range", "bytes 5-9/10")], body: [1, 2, 3, 4, 5])
            case 2: .status(206, headers: [("ETag", "\"v1\"")], body: [1])
            default: .status(416)
            }
        }
        try await withDownloader { downloader in
            _ = await downloader.download(DownloadRequest(url: origin.url("/a")))
            let failure = await downloader.download(DownloadRequest(url: origin.url("/a"))).failure
            #expect(failure?.failureClass == .truncated)
            // The connection broke first: the body never arrived whole.
            #expect(failure?.isListed == false)
            _ = await downloader.download(DownloadRequest(url: origin.url("/a")))
        }
        #expect(origin.requests.map { $0.header("Range") != nil } == [false, true, false])
    }

    /// A part that was not requested is not accepted as a body, whatever its headers say.
    @Test(arguments: ["bytes 0-9/10", "bytes 0-9/200000", "bytes 5-14/200000", nil])
    func aPartThatWasNotRequestedIsTruncated(_ range: String?) async throws {
        let headers = [("ETag", "\"v1\"")] + (range.map { [("Content-Range", $0)] } ?? [])
        let origin = try LoopbackOrigin { _ in .status(206, headers: headers, body: Array(Self.body.prefix(10))) }
        try await withDownloader { downloader in
            let failure = await downloader.download(DownloadRequest(url: origin.url("/a"))).failure
            #expect(failure?.failureClass == .truncated)
            #expect(failure?.message == "127.0.0.1 sent a part of the body, but the whole was requested.")
        }
    }

    /// The range is compared with the known length and the received bytes. Each range here is refused, and the next try
    /// is fresh.
    @Test(arguments: ["F-199999/200001", "F-199998/199999", "F-199998/200000", "F-200000/*", "F-199999/x"])
    func aContradictoryContentRangeFails(_ range: String) async throws {
        let origin = try origin { request in
            let first = Int(request.header("Range")?.dropFirst(6).dropLast() ?? "") ?? 0
            let range = "bytes " + range.replacing("F", with: "\(first)")
            return .status(
                206, headers: [("ETag", "\"v1\""), ("Content-Range", range)], body: Array(Self.body[first...]))
        }
        try await withDownloader { downloader in
            var ends: [FailureClass?] = []
            for _ in 0..<3 { ends.append(await downloader.download(DownloadRequest(url: origin.url("/a"))).code) }
            #expect(ends == [.connectionLost, .truncated, .connectionLost])
        }
        #expect(origin.requests.map { $0.header("Range") != nil } == [false, true, false])
    }

    /// The answer has only a part of the rest, and the next try resumes behind it.
    @Test func aPartOfTheRestIsResumed() async throws {
        let origin = try origin { request in
            let first = Int(request.header("Range")?.dropFirst(6).dropLast() ?? "") ?? 0
            let end = min(first + 60_000, Self.body.count)
            let range = "bytes \(first)-\(end - 1)/\(first > 120_000 ? "*" : "\(Self.body.count)")"
            return .status(
                206, headers: [("ETag", "\"v1\""), ("Content-Range", range)], body: Array(Self.body[first..<end]))
        }
        try await withDownloader { downloader in
            for _ in 0..<2 {
                #expect(await downloader.download(DownloadRequest(url: origin.url("/a"))).code == .connectionLost)
            }
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/a")))
            let bytes = try outcome.file?.bytes()
            #expect(bytes == Self.body)
        }
        #expect(origin.requests.map { $0.header("Range") != nil } == [false, true, true])
    }

    @Test func aBodyIsNotResumedWithOtherHeaders() async throws {
        let origin = try origin { part($0) }
        try await withDownloader { downloader in
            _ = await downloader.download(DownloadRequest(url: origin.url("/a"), headers: [("X-Key", "1")]))
            _ = await downloader.download(DownloadRequest(url: origin.url("/a"), headers: [("X-Key", "2")]))
        }
        #expect(origin.requests.allSatisfy { $0.header("Range") == nil })
    }
}
