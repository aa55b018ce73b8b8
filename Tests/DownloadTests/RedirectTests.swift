import Core
import Download
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15))) struct RedirectTests {
    @Test(arguments: [301, 302, 303, 307, 308]) func redirectsAreFollowed(code: Int) async throws {
        let origin = try LoopbackOrigin(script: [
            "/a": [.redirect(to: "dir/b c", code: code)], "/dir/b%20c": [.redirect(to: "/d?x=1")],
            "/d?x=1": [.ok([1, 2])],
        ])
        try await withDownloader { downloader in
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/a")))
            #expect(outcome.file?.size == 2)
            #expect(outcome.response?.redirects == 2)
            #expect(outcome.response?.finalURL == origin.url("/d?x=1"))
            #expect(origin.connectionCount == 1)
        }
    }

    @Test(arguments: [(5, true), (6, false)]) func redirectsAreCounted(hops: Int, arrives: Bool) async throws {
        let origin = try LoopbackOrigin { request in
            let left = Int(request.path.dropFirst()) ?? 0
            return left == 0 ? .ok([1]) : .redirect(to: "/\(left - 1)")
        }
        try await withDownloader { downloader in
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/\(hops)")))
            #expect(outcome.code == (arrives ? nil : .tooManyRedirects))
            #expect(origin.requests.count == 6)
        }
    }

    @Test func aRedirectLoopEnds() async throws {
        let origin = try LoopbackOrigin { _ in .redirect(to: "/") }
        try await withDownloader { downloader in
            #expect(await downloader.download(DownloadRequest(url: origin.url("/"))).code == .tooManyRedirects)
        }
    }

    @Test(arguments: ["ftp://127.0.0.1/", "file:///etc/passwd", "http://", "javascript:1", "http://exa mple/"])
    func aRedirectToAnInvalidURLIsRefused(location: String) async throws {
        let origin = try LoopbackOrigin { _ in .redirect(to: location) }
        try await withDownloader { downloader in
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/")))
            #expect(outcome.code == .invalidURL)
            #expect(outcome.response?.status == 302)
        }
    }

    @Test func aRedirectWithoutALocationIsItsStatus() async throws {
        let origin = try LoopbackOrigin { _ in .status(302) }
        try await withDownloader { downloader in
            #expect(await downloader.download(DownloadRequest(url: origin.url("/"))).code == .http(302))
        }
    }

    @Test func theLongBodyOfARedirectIsNotRead() async throws {
        let long = [UInt8](repeating: 0x78, count: 1 << 20)
        let origin = try LoopbackOrigin {
            $0.path == "/" ? .status(302, headers: [("Location", "/b")], body: long) : .ok([1])
        }
        try await withDownloader { downloader in
            #expect(await downloader.download(DownloadRequest(url: origin.url("/"))).file?.size == 1)
        }
    }

    @Test func secretsAreNotSentToAnotherOrigin() async throws {
        let other = try LoopbackOrigin { _ in .ok([1]) }
        let origin = try LoopbackOrigin { [url = other.url("/there")] request in
            request.path == "/first" ? .redirect(to: "/second") : .redirect(to: url)
        }
        try await withDownloader { downloader in
            let request = DownloadRequest(
                url: "http://me:secret@127.0.0.1:\(origin.port)/first",
                headers: [("Authorization2", "x"), ("Cookie", "a=b"), ("Accept", "image/webp")],
            )
            #expect(await downloader.download(request).file?.size == 1)
            #expect(origin.requests.map { $0.header("Cookie") } == ["a=b", "a=b"])
            #expect(origin.requests.allSatisfy { $0.header("Authorization") != nil })
            let there = try #require(other.requests.first)
            #expect(there.header("Cookie") == nil)
            #expect(there.header("Authorization") == nil)
            #expect(there.header("Authorization2") == nil)
            #expect(there.header("Accept") == "image/*,*/*;q=0.8")
        }
    }

    @Test func theAddressGuardChecksEveryHop() async throws {
        let origin = try LoopbackOrigin { _ in .redirect(to: "http://127.0.0.2:1/") }
        let configuration = try AddressPolicy(allowing: ["127.0.0.1"])
        try await withDownloader(configure: { $0.addresses = configuration }) { downloader in
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/")))
            #expect(outcome.code == .forbiddenAddress)
            #expect(outcome.failure?.message == "127.0.0.2 may not be connected to.")
        }
    }
}

@Suite(.timeLimit(.minutes(15))) struct AddressGuardTests {
    @Test(arguments: [
        "http://127.0.0.1:PORT/", "http://localhost:PORT/", "http://0x7f000001:PORT/", "http://2130706433:PORT/",
        "http://0:PORT/", "http://[::ffff:127.0.0.1]:PORT/", "http://[::1]:PORT/", "http://169.254.169.254/",
        "http://127.1:PORT/", "http://[64:ff9b::127.0.0.1]/",
    ])
    func aForbiddenAddressIsRefusedBeforeConnecting(url: String) async throws {
        let origin = try LoopbackOrigin { _ in .ok([1]) }
        try await withDownloader(configure: { $0.addresses = .publicOnly }) { downloader in
            let url = url.replacing("PORT", with: "\(origin.port)")
            #expect(await downloader.download(DownloadRequest(url: url)).code == .forbiddenAddress)
            #expect(origin.connectionCount == 0)
        }
    }

    @Test func theEnvironmentsProxyIsIgnored() async throws {
        let origin = try LoopbackOrigin { _ in .ok([1]) }
        try await withEnvironment("http_proxy", "http://127.0.0.1:1") {
            try await withDownloader { downloader in
                #expect(await downloader.download(DownloadRequest(url: origin.url("/"))).file != nil)
            }
        }
    }

    @Test func aConfiguredProxyIsUsed() async throws {
        let proxy = try LoopbackOrigin { _ in .ok([1, 2, 3]) }
        try await withDownloader(configure: { $0.proxy = proxy.url("") }) { downloader in
            let outcome = await downloader.download(DownloadRequest(url: "http://example.invalid/a"))
            #expect(outcome.file?.size == 3)
            #expect(proxy.requests.first?.path == "http://example.invalid/a")
        }
    }
}
