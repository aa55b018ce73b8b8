import Core
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Download

@Suite(.timeLimit(.minutes(15))) struct RobotsTests {
    static let rules: [(text: String, path: String, isAllowed: Bool)] = [
        ("", "/a", true),
        ("User-agent: *\nDisallow: /", "/a", false),
        ("User-agent: *\nDisallow:", "/a", true),
        ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", true),
        ("User-agent: *\nAllow: /a\nDisallow: /a", "/a", true),
        ("user-AGENT: PrefetchWorker/1.0 \nDISALLOW: /x # why\n\nUser-agent: *\nDisallow: /", "/a", true),
        ("User-agent: prefetchworker\nDisallow: /x", "/x/1", false),
        ("User-agent: other\nUser-agent: prefetchworker\nDisallow: /x", "/x", false),
        ("User-agent: other\nDisallow: /x\nUser-agent: *\nDisallow: /y", "/x", true),
        ("User-agent: *\nDisallow: /*.gif$", "/a/b.gif", false),
        ("User-agent: *\nDisallow: /*.gif$", "/a/b.gif?x", true),
        ("User-agent: *\nDisallow: /a*c*e", "/abcde", false),
        ("User-agent: *\nDisallow: /a*c*e", "/abcd", true),
        ("User-agent: *\nDisallow: /%7Ejoe/", "/~joe/index", false),
        ("User-agent: *\nDisallow: /\u{E4}", "/%c3%a4", false),
        ("User-agent: *\nDisallow: /robots.txt", "/robots.txt", true),
        ("User-agent: *\nDisallow: /fish*", "/fishheads", false),
        ("Disallow: /a", "/a", true),
        ("User-agent: prefetchworker\nCrawl-delay: 10\nUser-agent: other\nDisallow: /x", "/x", false),
        ("User-agent: other\nSitemap: http://a.example/s\nUser-agent: prefetchworker\nDisallow: /x", "/x", false),
        ("User-agent: other\nDisallow: /y\nCrawl-delay: 1\nUser-agent: prefetchworker\nDisallow: /x", "/y", true),
        ("nonsense\n:::\nUser-agent: *\n\u{0}Disallow: /a", "/a", true),
        ("\u{FEFF}User-agent: *\r\nCrawl-delay: 9\r\nDisallow: /a\r\n", "/b", true),
        ("\u{FEFF}User-agent: *\r\nDisallow: /a\r\n", "/a", false),
    ]

    @Test(arguments: rules.indices) func rulesOfRobotsTxtFollowTheStandard(_ index: Int) {
        let (text, path, isAllowed) = Self.rules[index]
        #expect(RobotsText(text.utf8, agent: "prefetchworker").allows(path) == isAllowed)
    }

    @Test func aHostilePatternTakesLinearTime() {
        let text = "User-agent: *\nDisallow: /" + String(repeating: "*a", count: 2_000) + "b"
        #expect(RobotsText(text.utf8, agent: "x").allows("/" + String(repeating: "a", count: 4_000)))
    }

    /// A step is one compared byte. One path never needs more than some millions of steps.
    @Test func hostileRulesTakeNoLongerThanOthers() {
        let rule = "Disallow: /*" + String(repeating: "a", count: 4_000) + "b\n"
        let text = "User-agent: *\n" + String(repeating: rule, count: 100)
        let rules = RobotsText(text.utf8, agent: "x")
        #expect(!rules.allows("/" + String(repeating: "a", count: 8_000)))
        #expect(rules.allows("/abc"))
    }

    static let tags: [(header: String?, isForbidden: Bool)] = [
        (nil, false), ("noindex", false), ("noai", true), ("noindex, NoImageAI", true), ("otherbot: noai", false),
        ("prefetchworker: noai", true), ("otherbot: noindex, noai, PrefetchWorker: nofollow", false),
        ("max-image-preview: large, noai", true), ("noaiming", false),
        ("otherbot: noindex\nnoai", true), ("noindex\notherbot: noai\nnofollow", false),
        ("unavailable_after: Wed, 25 Jun 2040 15:00:00 GMT, noai", true),
        ("unavailable_after: 2040-06-25T15:00:00Z, noai", true), ("prefetchworker : max-snippet: 5, noai", true),
        ("otherbot: unavailable_after: Wednesday, 25-Jun-40 15:00:00 GMT, noai", false), (", :, noai:", false),
    ]

    @Test(arguments: tags.indices) func robotsTagsAreParsed(_ index: Int) {
        let (header, isForbidden) = Self.tags[index]
        #expect(RobotsTag.forbids(header, agent: "prefetchworker") == isForbidden)
    }

    private func asking(_ url: String) -> DownloadRequest {
        var request = DownloadRequest(url: url)
        request.respectsRobotsText = true
        request.respectsRobotsTag = true
        return request
    }

    @Test func robotsTxtIsRequestedOnceAndObeyed() async throws {
        let rules = Array("User-agent: *\nDisallow: /no".utf8)
        let origin = try LoopbackOrigin { $0.path == "/robots.txt" ? .ok(rules, type: "text/plain") : .ok([1]) }
        let refuse: @Sendable (UnsafeRawBufferPointer) -> BodyVerdict = { bytes in
            bytes.first == 1 ? .accept : .refuse(Failure(.notAnImage, "Text."))
        }
        try await withDownloader(inspect: refuse, configure: { $0.concurrency = 1 }) { downloader in
            #expect(await downloader.download(asking(origin.url("/yes"))).file != nil)
            #expect(await downloader.download(asking(origin.url("/no/1"))).code == .optOut)
            #expect(await downloader.download(DownloadRequest(url: origin.url("/no/2"))).file != nil)
        }
        #expect(origin.requests.map(\.path) == ["/robots.txt", "/yes", "/no/2"])
    }

    @Test func robotsTxtIsCheckedForEveryHopOfARedirect() async throws {
        let other = try LoopbackOrigin { request in
            request.path == "/robots.txt" ? .ok(Array("User-agent: *\nDisallow: /no".utf8)) : .ok([1])
        }
        let origin = try LoopbackOrigin { request in
            switch request.path {
            case "/robots.txt": .status(404)
            case "/loop": .redirect(to: "/loop")
            default: .redirect(to: "http://localhost:\(other.port)\(request.path)")
            }
        }
        try await withDownloader { downloader in
            #expect(await downloader.download(asking(origin.url("/yes"))).response?.redirects == 1)
            #expect(await downloader.download(asking(origin.url("/no"))).code == .optOut)
            #expect(await downloader.download(asking(origin.url("/loop"))).code == .tooManyRedirects)
        }
        #expect(other.requestCount("/no") == 0)
    }

    @Test func anUnavailableRobotsTxtFailsTheRequestAndIsRequestedAgain() async throws {
        let origin = try LoopbackOrigin(script: [
            "/robots.txt": [.status(503), .ok(Array("User-agent: *\nAllow: /".utf8))], "/a": [.ok([1])],
        ])
        try await withDownloader { downloader in
            #expect(await downloader.download(asking(origin.url("/a"))).code == .http(503))
            #expect(await downloader.download(asking(origin.url("/a"))).file != nil)
        }
    }

    @Test func eachLineOfRobotsTagIsRead() async throws {
        let tags = [("X-Robots-Tag", "otherbot: noindex"), ("X-Robots-Tag", "noai")]
        let origin = try LoopbackOrigin { request in
            request.path == "/robots.txt" ? .status(404) : .ok([1], headers: tags)
        }
        try await withDownloader { downloader in
            #expect(await downloader.download(asking(origin.url("/a"))).code == .optOut)
        }
    }

    /// The request for robots.txt is shared, and each waiting request can be cancelled.
    @Test func aCancelledRequestDoesNotWaitForRobotsTxt() async throws {
        let origin = try LoopbackOrigin { _ in .silence }
        try await withDownloader { downloader in
            let downloads = (0..<3).map { number in
                Task { await downloader.download(asking(origin.url("/\(number)"))) }
            }
            #expect(await eventually { origin.requests.count == 1 })
            for download in downloads { download.cancel() }
            for download in downloads { #expect(await download.value.code == .cancelled) }
            #expect(downloader.counts.running == 1)
        }
        #expect(origin.requests.map(\.path) == ["/robots.txt"])
    }

    /// Hosts choose the length of their rules.
    @Test func theOldestRulesAreForgottenIfAllTogetherAreTooLong() async throws {
        let keeper = RobotsKeeper(agent: "x", maxTotalBytes: 10_000)
        let count = Mutex(0)
        func ask(_ host: String) async throws {
            let url = try DownloadURL("http://\(host)/no", maxBytes: 100)
            let objection = await keeper.objection(to: url, for: DownloadRequest(url: url.text)) { question in
                count.withLock { $0 += 1 }
                let text = "User-agent: *\nDisallow: /no\nDisallow: /" + String(repeating: "a", count: 3_000)
                guard let file = try? unnamedFile(), (try? file.writeAll(text.utf8)) != nil else {
                    return .failed(.stopped())
                }
                let body = BodyFile(file, size: Int64(text.utf8.count), sha256: "") {}
                return .body(body, DownloadResponse.local(bytes: body.size))
            }
            #expect(objection?.code == .optOut)
        }
        for number in 0..<6 { try await ask("\(number).example") }
        #expect(count.withLock { $0 } == 6)
        for number in 3..<6 { try await ask("\(number).example") }
        #expect(count.withLock { $0 } == 6)
        try await ask("0.example")
        #expect(count.withLock { $0 } == 7)
    }

    @Test func aRobotsTagOfA304IsObeyed() async throws {
        let origin = try LoopbackOrigin { request in
            request.path == "/robots.txt" ? .status(404) : .status(304, headers: [("X-Robots-Tag", "noai")])
        }
        try await withDownloader { downloader in
            var request = asking(origin.url("/a"))
            request.etag = "\"1\""
            #expect(await downloader.download(request).code == .optOut)
            request.respectsRobotsTag = false
            #expect(await downloader.download(request).failure == nil)
        }
    }

    /// The line at the limit is cut: its rest would forbid more than the whole line.
    @Test(arguments: [true, false]) func theBeginningOfATooLongRobotsTxtIsUsed(_ isAnnounced: Bool) async throws {
        var text = Array("User-agent: *\nDisallow: /no\n".utf8)
        let rest = Array("\nDisallow: /late\n".utf8)
        text += [UInt8](repeating: UInt8(ascii: "#"), count: (500 << 10) - text.count - 13) + rest
        #expect(text[..<((500 << 10) + 1)].suffix(13).elementsEqual("Disallow: /la".utf8))
        text += [UInt8](repeating: UInt8(ascii: "#"), count: 200 << 10)
        let origin = try LoopbackOrigin { [text] request in
            guard request.path == "/robots.txt" else { return .ok([1]) }
            return isAnnounced ? .ok(text) : .chunked(totalBytes: 1 << 30, startingWith: text)
        }
        try await withDownloader { downloader in
            #expect(await downloader.download(asking(origin.url("/no"))).code == .optOut)
            #expect(await downloader.download(asking(origin.url("/late"))).file != nil)
            #expect(await downloader.download(asking(origin.url("/lawn"))).file != nil)
        }
        #expect(origin.requestCount("/robots.txt") == 1)
    }

    @Test func aRobotsTagEndsTheTransferEarly() async throws {
        let body = [UInt8](repeating: 1, count: 4 << 20)
        let origin = try LoopbackOrigin { request in
            request.path == "/robots.txt" ? .status(404) : .ok(body, headers: [("X-Robots-Tag", "noai")])
        }
        try await withDownloader { downloader in
            #expect(await downloader.download(asking(origin.url("/a"))).code == .optOut)
            #expect(downloader.counts.bytes < 1 << 20)
            #expect(await downloader.download(DownloadRequest(url: origin.url("/a"))).file?.size == 4 << 20)
        }
    }
}
