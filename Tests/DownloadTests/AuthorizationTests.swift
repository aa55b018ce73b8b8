import Core
import Download
import TestSupport
import Testing

/// The hosts that get a job's credentials.
@Suite(.timeLimit(.minutes(15))) struct AuthorizationTests {
    private func request(_ url: String, _ authorization: String) -> DownloadRequest {
        DownloadRequest(url: url, headers: [("Authorization", authorization), ("X-Key", "k")])
    }

    @Test func basicCredentialsAreEncodedAndBearerTokensAreSentUnchanged() async throws {
        let origin = try LoopbackOrigin { _ in .ok([1]) }
        try await withDownloader { downloader in
            _ = await downloader.download(request(origin.url("/1"), "Basic ann:s3:cret"))
            _ = await downloader.download(request(origin.url("/2"), "Bearer abc.def"))
            _ = await downloader.download(request(origin.url("/3"), "Basic YW5uOnM="))
        }
        #expect(
            origin.requests.map { $0.header("Authorization") } == [
                "Basic YW5uOnMzOmNyZXQ=", "Bearer abc.def", "Basic YW5uOnM=",
            ])
        #expect(origin.requests.allSatisfy { $0.header("X-Key") == "k" })
    }

    private func challenge(body: [UInt8] = []) -> LoopbackReply {
        .status(
            401, headers: [("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n0\", qop=\"auth\", algorithm=MD5")],
            body: body)
    }

    @Test(arguments: [0, 100, 100_000]) func digestAnswersTheChallenge(bytes: Int) async throws {
        let body = [UInt8](repeating: 0x78, count: bytes)
        let origin = try LoopbackOrigin { request in
            let answer = request.header("Authorization") ?? ""
            return answer.hasPrefix("Digest ") && answer.contains("username=\"ann\"") && answer.contains("nonce=\"n0\"")
                ? .ok([1, 2]) : challenge(body: body)
        }
        try await withDownloader { downloader in
            let outcome = await downloader.download(request(origin.url("/a"), "Digest ann:secret"))
            #expect(outcome.file?.size == 2)
        }
        #expect(origin.requests.count == 2)
        #expect(origin.requests.allSatisfy { !($0.header("Authorization") ?? "").contains("secret") })
    }

    @Test(arguments: ["Digest ann:wrong", "Basic ann:wrong", "Bearer wrong"])
    func wrongCredentialsEndInOneFailure(_ authorization: String) async throws {
        let origin = try LoopbackOrigin { _ in challenge(body: Array("no".utf8)) }
        try await withDownloader { downloader in
            let outcome = await downloader.download(request(origin.url("/a"), authorization))
            #expect(outcome.code == .http(401))
            #expect(outcome.failure?.message.contains("wrong") == false)
        }
        #expect(origin.requests.count <= 2)
    }

    @Test func digestCredentialsAreSentToAChallengeOnly() async throws {
        let origin = try LoopbackOrigin { _ in .status(401) }
        try await withDownloader { downloader in
            #expect(await downloader.download(request(origin.url("/a"), "Digest ann:x")).code == .http(401))
        }
    }

    @Test(arguments: ["Basic ann:secret", "Digest ann:secret", "Bearer secret"])
    func anotherHostGetsNoCredentials(_ authorization: String) async throws {
        let other = try LoopbackOrigin { request in
            request.header("Authorization") == nil ? .ok([1]) : .status(500)
        }
        let origin = try LoopbackOrigin { _ in .redirect(to: "http://localhost:\(other.port)/b") }
        try await withDownloader { downloader in
            #expect(await downloader.download(request(origin.url("/a"), authorization)).file != nil)
        }
        #expect(other.requests.map { $0.header("X-Key") } == [nil])
    }
}
