import Download
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15))) struct CookieTests {
    private func origin() throws -> LoopbackOrigin {
        try LoopbackOrigin { request in
            request.path == "/in"
                ? .status(302, headers: [("Set-Cookie", "session=1; Path=/"), ("Location", "/a")]) : .ok([1])
        }
    }

    private func request(_ url: String, jar: Int64?) -> DownloadRequest {
        var request = DownloadRequest(url: url)
        request.cookieJar = jar
        return request
    }

    @Test func aRequestHasTheCookiesOfItsJobOnly() async throws {
        let origin = try origin()
        try await withDownloader { downloader in
            for (path, jar) in [("/in", 1), ("/b", 1), ("/c", 2), ("/d", nil), ("/e", 1)] as [(String, Int64?)] {
                _ = await downloader.download(request(origin.url(path), jar: jar))
            }
        }
        let sent = origin.requests.map { "\($0.path) \($0.header("Cookie") ?? "-")" }
        #expect(sent == ["/in -", "/a session=1", "/b session=1", "/c -", "/d -", "/e session=1"])
    }

    @Test func withoutAJarNoCookiesAreKept() async throws {
        let origin = try origin()
        try await withDownloader { downloader in
            for path in ["/in", "/b"] { _ = await downloader.download(request(origin.url(path), jar: nil)) }
        }
        #expect(origin.requests.allSatisfy { $0.header("Cookie") == nil })
    }

    @Test func cookiesAreNotSentToAnotherHost() async throws {
        let origin = try origin()
        try await withDownloader { downloader in
            _ = await downloader.download(request(origin.url("/in"), jar: 1))
            _ = await downloader.download(request("http://localhost:\(origin.port)/b", jar: 1))
        }
        #expect(origin.requests.last?.header("Cookie") == nil)
    }

    @Test func anyNumberOfJobsMayHaveJars() async throws {
        let origin = try origin()
        try await withDownloader { downloader in
            for jar in Int64(0)..<200 {
                #expect(await downloader.download(request(origin.url("/in"), jar: jar)).file != nil)
            }
        }
    }
}
