import Core
import SystemPackage
import TestSupport
import Testing

@testable import Download

/// A redirect to another host is a request to that host, with all its limits. The two hosts are the two names of
/// loopback; the one that redirects is 127.0.0.1.
@Suite(.timeLimit(.minutes(15))) struct HostRedirectTests {
    private static let target = "localhost"

    /// Answers below /there, and redirects all else to it, at the target.
    private func origin(
        there: @escaping @Sendable (LoopbackOrigin.Request) -> LoopbackReply = { _ in .ok([1]) },
    ) throws -> LoopbackOrigin {
        let origin = try LoopbackOrigin { request in
            if request.path == "/plain" { return .ok([1]) }
            guard !request.path.hasPrefix("/there") else { return there(request) }
            return .redirect(to: "http://\(Self.target):\(request.port)/there\(request.path)")
        }
        return origin
    }

    @Test func aRedirectCountsAgainstItsTargetHost() async throws {
        let origin = try origin()
        try await withDownloader(configure: { $0.rate = 1_000 }) { downloader in
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/a")))
            #expect(outcome.response?.redirects == 1)
            #expect(outcome.response?.finalURL == "http://localhost:\(origin.port)/there/a")
            let started = Dictionary(uniqueKeysWithValues: downloader.hosts.map { ($0.host, $0.started) })
            #expect(started == ["127.0.0.1": 1, "localhost": 1])
        }
    }

    @Test(arguments: [429, 503]) func aBusyTargetsWindowNarrowsAndNoOther(_ status: Int) async throws {
        let origin = try origin { _ in .status(status, headers: [("Retry-After", "60")]) }
        try await withDownloader { downloader in
            let failure = await downloader.download(DownloadRequest(url: origin.url("/a"))).failure
            #expect(failure?.failureClass == .http(status))
            #expect(failure?.host == "localhost")
            #expect(failure?.retryAfter == .seconds(60))
            #expect(downloader.hosts.map(\.host) == ["localhost"])
            #expect(downloader.hosts.first?.window == 3)
        }
    }

    @Test func anUnreachableTargetsCircuitOpensAndNoOther() async throws {
        let port = try LoopbackOrigin.unusedPort()
        let origin = try LoopbackOrigin { _ in .redirect(to: "http://localhost:\(port)/") }
        try await withDownloader(configure: { $0.circuitBreaker.failures = 1 }) { downloader in
            let failure = await downloader.download(DownloadRequest(url: origin.url("/a"))).failure
            #expect(failure?.failureClass == .connect)
            #expect(failure?.host == "localhost")
            #expect(downloader.blocked("localhost")?.reason == .circuitOpen)
            #expect(downloader.blocked("127.0.0.1") == nil)
        }
    }

    @Test func aBlockOfTheTargetDelaysTheRedirectAndNotTheFirstHost() async throws {
        let origin = try origin()
        try await withDownloader { downloader in
            downloader.block(host: "localhost", for: .seconds(3_600))
            async let redirected = downloader.download(DownloadRequest(url: origin.url("/a")))
            #expect(await eventually { downloader.counts.waiting == 1 && origin.requests.count == 1 })
            #expect(await downloader.download(DownloadRequest(url: origin.url("/plain"))).file != nil)
            #expect(downloader.counts.waiting == 1)
            downloader.shedBlocked(longerThan: .seconds(5))
            #expect(await redirected.crowdedHost == "localhost")
            #expect(origin.requests.map(\.path) == ["/a", "/plain"])
        }
    }

    @Test func theTargetsLimitHoldsForRedirects() async throws {
        let gate = Gate()
        let origin = try origin { _ in
            gate.wait()
            return .ok([1])
        }
        try await withDownloader { downloader in
            downloader.setLimits(
                concurrency: 6, limits: HostLimits(perHost: 6), special: ["localhost": HostLimits(perHost: 1)])
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<6 {
                    let request = DownloadRequest(url: origin.url("/\(number)"))
                    group.addTask { #expect(await downloader.download(request).file != nil) }
                }
                #expect(await eventually { downloader.counts.running == 1 && downloader.counts.waiting == 5 })
                gate.open()
            }
            #expect(origin.maxSimultaneous(under: "/there") == 1)
        }
    }

    /// The only slot at the target is taken, so that all requests meet in its queue.
    @Test func aRedirectedRequestKeepsItsRankInTheQueue() async throws {
        let gate = Gate()
        let origin = try origin { request in
            if request.path == "/there/first" { gate.wait() }
            return .ok([1])
        }
        try await withDownloader { downloader in
            downloader.setLimits(
                concurrency: 6, limits: HostLimits(perHost: 6), special: ["localhost": HostLimits(perHost: 1)])
            await withTaskGroup(of: Void.self) { group in
                func ask(_ url: String, _ priority: Int, _ rank: Int64, waiting: Int) async {
                    let request = DownloadRequest(url: url, priority: priority, rank: rank)
                    group.addTask { _ = await downloader.download(request) }
                    // What is redirected may wait at the first host before it does at the second.
                    let isThere = url.contains("/there")
                    #expect(
                        await eventually {
                            let isOnItsWay = isThere || origin.requests.contains { url.hasSuffix($0.path) }
                            let counts = downloader.counts
                            return isOnItsWay && counts.running == 1 && counts.waiting == waiting
                        })
                }
                let there = "http://localhost:\(origin.port)/there"
                await ask(there + "/first", 0, 1, waiting: 0)
                await ask(there + "/4", 0, 4, waiting: 1)
                await ask(there + "/3", 0, 3, waiting: 2)
                await ask(origin.url("/2"), 0, 2, waiting: 3)
                await ask(origin.url("/urgent"), 9, 9, waiting: 4)
                gate.open()
            }
        }
        let order = origin.requests.map(\.path).filter { $0.hasPrefix("/there") }
        #expect(order == ["/there/first", "/there/urgent", "/there/2", "/there/3", "/there/4"])
    }

    @Test func aLoopBetweenTwoHostsEnds() async throws {
        let origin = try LoopbackOrigin { request in
            let other = request.header("Host")?.hasPrefix("localhost") == true ? "127.0.0.1" : "localhost"
            return .redirect(to: "http://\(other):\(request.port)/")
        }
        try await withDownloader { downloader in
            let failure = await downloader.download(DownloadRequest(url: origin.url("/"))).failure
            #expect(failure?.failureClass == .tooManyRedirects)
            #expect(failure?.message == "127.0.0.1 redirects more than 5 times.")
            #expect(origin.requests.count == 6)
        }
    }

    @Test func aRedirectedRequestIsCancelledWhileItWaitsForTheTarget() async throws {
        let origin = try origin()
        try await withDownloader { downloader in
            downloader.block(host: "localhost", for: .seconds(3_600))
            let task = Task { await downloader.download(DownloadRequest(url: origin.url("/a"))) }
            #expect(await eventually { downloader.counts.waiting == 1 && origin.requests.count == 1 })
            task.cancel()
            #expect(await task.value.code == .cancelled)
            #expect(downloader.counts.waiting == 0)
            #expect(origin.requests.count == 1)
        }
    }

    /// A job's own headers are sent to the first host only, and again if a redirect leads back to that host.
    @Test func secretsAreSentToTheFirstHostOnly() async throws {
        let origin = try LoopbackOrigin { request in
            switch request.path {
            case "/a": .redirect(to: "http://localhost:\(request.port)/b")
            case "/b": .redirect(to: "http://127.0.0.1:\(request.port)/c")
            default: .ok([1])
            }
        }
        try await withDownloader { downloader in
            let url = "http://me:secret@127.0.0.1:\(origin.port)/a"
            let outcome = await downloader.download(DownloadRequest(url: url, headers: [("X-Key", "1")]))
            #expect(outcome.response?.redirects == 2)
        }
        #expect(origin.requests.map { $0.header("X-Key") } == ["1", nil, "1"])
        #expect(origin.requests.map { $0.header("Authorization") != nil } == [true, false, true])
    }

    @Test func aTruncatedBodyOfTheTargetIsResumed() async throws {
        let body = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let origin = try origin { request in
            guard let range = request.header("Range"), let first = Int(range.dropFirst(6).dropLast()) else {
                return .broken(Array(body.prefix(60_000)), of: body.count, headers: [("ETag", "\"1\"")])
            }
            let headers = [("ETag", "\"1\""), ("Content-Range", "bytes \(first)-\(body.count - 1)/\(body.count)")]
            return .status(206, headers: headers, body: Array(body[first...]))
        }
        try await withDownloader { downloader in
            #expect(await downloader.download(DownloadRequest(url: origin.url("/a"))).code == .connectionLost)
            let bytes = try await downloader.download(DownloadRequest(url: origin.url("/a"))).file?.bytes()
            #expect(bytes == body)
        }
    }

    @Test func theTotalTimeoutIncludesAllHops() throws {
        var configuration = DownloadConfiguration()
        configuration.totalTimeout = .seconds(300)
        let url = try DownloadURL("http://a.example/", maxBytes: 100)
        let queued = QueuedTransfer(
            id: 1, request: DownloadRequest(url: url.text), hop: Hop(url: url, redirects: 1, spent: .seconds(290)),
            beginning: url, onRedirect: { _ in }, answer: { _ in })
        let tools = Transfer.Tools(
            makeFile: unnamedFile, makeReservation: { _ in nil }, inspect: { _ in .accept }, measure: { _ in nil })
        let now = ContinuousClock.now
        let transfer = Transfer(
            queued, easy: try EasyHandle(), configuration: configuration, tools: tools, now: now)
        #expect(transfer.deadline == now + .seconds(10))
    }
}

extension LoopbackOrigin.Request {
    /// Of the origin, as the client named it.
    fileprivate var port: Substring { header("Host")?.split(separator: ":").last ?? "" }
}
