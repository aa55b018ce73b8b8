import Core
import Download
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15))) struct SchedulingTests {
    /// Downloads all the paths at once, after a first one has taken the only slot, and returns the order of arrival.
    private func order(_ requests: [(path: String, priority: Int, rank: Int64)]) async throws -> [String] {
        let gate = Gate()
        let origin = try LoopbackOrigin { request in
            if request.path == "/first" { gate.wait() }
            return .ok([1])
        }
        try await withDownloader(configure: { $0.concurrency = 1 }) { downloader in
            await withTaskGroup(of: Void.self) { group in
                group.addTask { _ = await downloader.download(DownloadRequest(url: origin.url("/first"))) }
                _ = await eventually { origin.requests.count == 1 }
                for request in requests {
                    group.addTask {
                        _ = await downloader.download(
                            DownloadRequest(
                                url: origin.url(request.path), priority: request.priority, rank: request.rank),
                        )
                    }
                }
                _ = await eventually { downloader.counts.waiting == requests.count }
                gate.open()
            }
        }
        return origin.requests.dropFirst().map(\.path)
    }

    @Test func aHigherPriorityIsFirstWhateverTheRank() async throws {
        let found = try await order([("/low", -1, -100), ("/old", 0, 1), ("/new", 0, 2), ("/high", 9, 100)])
        #expect(found == ["/high", "/old", "/new", "/low"])
    }

    @Test func risingRanksAreFirstInFirstOut() async throws {
        let found = try await order((2...14).shuffled().map { ("/\($0)", 0, Int64($0)) })
        #expect(found == (2...14).map { "/\($0)" })
    }

    @Test func fallingRanksAreLastInFirstOut() async throws {
        let found = try await order((2...14).shuffled().map { ("/\($0)", 0, -Int64($0)) })
        #expect(found == (2...14).reversed().map { "/\($0)" })
    }

    @Test func waitingDownloadsCanBeMoved() async throws {
        let gate = Gate()
        let origin = try LoopbackOrigin { request in
            if request.path == "/0" { gate.wait() }
            return .ok([1])
        }
        try await withDownloader(configure: { $0.concurrency = 1 }) { downloader in
            await withTaskGroup(of: Void.self) { group in
                for number in Int64(0)...4 {
                    group.addTask {
                        let url = origin.url("/\(number)")
                        _ = await downloader.download(DownloadRequest(url: url, rank: number, id: number))
                    }
                    _ = await eventually { origin.requests.count == 1 }
                }
                _ = await eventually { downloader.counts.waiting == 4 }
                downloader.update(priority: 5, rank: 0, for: 3)
                downloader.update(priority: 0, rank: 99, for: 1)
                downloader.update(priority: 0, rank: 99, for: 1234)
                gate.open()
            }
        }
        #expect(origin.requests.map(\.path) == ["/0", "/3", "/2", "/4", "/1"])
    }

    @Test func theLimitsOfAllAndOfAHostHold() async throws {
        let origin = try LoopbackOrigin { _ in .delayed(milliseconds: 5, then: .ok([1])) }
        let configure: (inout DownloadConfiguration) -> Void = {
            $0.concurrency = 5
            $0.perHost = 3
        }
        try await withDownloader(configure: configure) { downloader in
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<120 {
                    let host = number % 2 == 0 ? "127.0.0.1" : "localhost"
                    let url = "http://\(host):\(origin.port)/\(host)/\(number)"
                    group.addTask { #expect(await downloader.download(DownloadRequest(url: url)).file != nil) }
                }
            }
        }
        #expect(origin.maxSimultaneous == 5)
        #expect(origin.maxSimultaneous(under: "/127.0.0.1/") == 3)
        #expect(origin.maxSimultaneous(under: "/localhost/") == 3)
    }

    @Test func limitsCanBeChanged() async throws {
        let gate = Gate()
        let origin = try LoopbackOrigin { _ in
            gate.wait()
            return .ok([1])
        }
        try await withDownloader(configure: { $0.concurrency = 1 }) { downloader in
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<8 {
                    group.addTask { _ = await downloader.download(DownloadRequest(url: origin.url("/\(number)"))) }
                }
                #expect(await eventually { downloader.counts.running == 1 && downloader.counts.waiting == 7 })
                downloader.setLimits(concurrency: 8, limits: HostLimits(perHost: 4))
                #expect(await eventually { downloader.counts.running == 4 })
                downloader.setLimits(concurrency: 8, limits: HostLimits(perHost: 8))
                #expect(await eventually { downloader.counts.running == 8 })
                gate.open()
            }
        }
    }

    @Test func aBusyHostDelaysNoOtherHost() async throws {
        let origin = try LoopbackOrigin { $0.path == "/slow" ? .silence : .ok([1]) }
        try await withDownloader(configure: { $0.perHost = 1 }) { downloader in
            let slow = (0..<3).map { _ in
                Task { await downloader.download(DownloadRequest(url: origin.url("/slow"), priority: 9)) }
            }
            _ = await eventually { downloader.counts.waiting == 2 }
            let url = "http://localhost:\(origin.port)/"
            #expect(await downloader.download(DownloadRequest(url: url)).file != nil)
            for task in slow { task.cancel() }
            for task in slow { #expect(await task.value.code == .cancelled) }
        }
    }

    @Test func requestsToABlockedHostWait() async throws {
        let origin = try LoopbackOrigin { _ in .ok([1]) }
        try await withDownloader { downloader in
            downloader.block(host: "127.0.0.1", for: .seconds(3600))
            #expect(downloader.blocked("127.0.0.1") != nil)
            #expect(downloader.blocked("localhost") == nil)
            let blocked = Task { await downloader.download(DownloadRequest(url: origin.url("/blocked"), priority: 9)) }
            #expect(await eventually { downloader.counts.waiting == 1 })
            let free = await downloader.download(DownloadRequest(url: "http://localhost:\(origin.port)/free"))
            #expect(free.file != nil)
            #expect(origin.requestCount("/blocked") == 0)
            blocked.cancel()
            #expect(await blocked.value.code == .cancelled)
        }
    }

    /// Many requests wait for the slot that the busy response frees: none is sent, and each ends with the reason.
    @Test(arguments: [429, 503]) func waitingRequestsHeedRetryAfter(_ status: Int) async throws {
        let gate = Gate()
        let origin = try LoopbackOrigin { _ in
            gate.wait()
            return .status(status, headers: [("Retry-After", "600")])
        }
        try await withDownloader(configure: { $0.perHost = 1 }) { downloader in
            let downloads = (0..<20).map { number in
                Task { await downloader.download(DownloadRequest(url: origin.url("/\(number)"))) }
            }
            #expect(await eventually { downloader.counts.waiting == 19 && origin.requests.count == 1 })
            gate.open()
            #expect(await eventually { downloader.blocked("127.0.0.1") != nil })
            #expect(downloader.blocked("127.0.0.1")?.reason == .retryAfter)
            downloader.shedBlocked(longerThan: .seconds(5))
            var codes: [FailureClass: Int] = [:]
            var sentAway = 0
            for download in downloads {
                let outcome = await download.value
                if let code = outcome.code { codes[code, default: 0] += 1 }
                if outcome.crowdedHost == "127.0.0.1" { sentAway += 1 }
            }
            #expect(codes == [.http(status): 1] && sentAway == 19)
            #expect(origin.requests.count == 1)
        }
    }

    /// A permanent failure counts for its URL only.
    @Test func aRetryAfterOfA404DoesNotBlockTheHost() async throws {
        let origin = try LoopbackOrigin { _ in .status(404, headers: [("Retry-After", "600")]) }
        try await withDownloader { downloader in
            #expect(await downloader.download(DownloadRequest(url: origin.url("/a"))).code == .http(404))
            #expect(downloader.blocked("127.0.0.1") == nil)
        }
    }

    @Test func aBlockEndsAfterItsTime() async throws {
        let origin = try LoopbackOrigin { _ in .ok([1]) }
        try await withDownloader { downloader in
            let started = ContinuousClock.now
            downloader.block(host: "127.0.0.1.", for: .milliseconds(300))
            // A shorter one doesn't undo a longer one.
            downloader.block(host: "127.0.0.1", for: .milliseconds(10))
            #expect(await downloader.download(DownloadRequest(url: origin.url("/"))).file != nil)
            #expect(ContinuousClock.now - started >= .milliseconds(300))
            #expect(downloader.blocked("127.0.0.1") == nil)
        }
    }

    @Test func unconsumedBodiesDelayNewTransfers() async throws {
        let origin = try LoopbackOrigin { _ in .ok([1]) }
        try await withDownloader(configure: { $0.maxUnconsumedBodies = 3 }) { downloader in
            let files = Files()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<7 {
                    group.addTask {
                        let outcome = await downloader.download(DownloadRequest(url: origin.url("/\(number)")))
                        if let file = outcome.file { files.append(file) }
                    }
                }
                #expect(await eventually { downloader.counts.unconsumed == 3 && files.count == 3 })
                try await Task.sleep(for: .milliseconds(50))
                #expect(origin.requests.count == 3)
                // Twice counts once.
                files.first?.markConsumed()
                files.first?.markConsumed()
                #expect(await eventually { files.count == 4 })
                try await Task.sleep(for: .milliseconds(50))
                #expect(origin.requests.count == 4)
                // Letting go of them is as good.
                files.removeAll()
                #expect(await eventually { files.count == 3 })
                #expect(origin.requests.count == 7)
            }
            files.removeAll()
            #expect(downloader.counts.unconsumed == 0)
        }
    }

    @Test func aHigherConcurrencyAllowsMoreUnconsumedBodies() async throws {
        let origin = try LoopbackOrigin { _ in .ok([1]) }
        let configure: (inout DownloadConfiguration) -> Void = {
            $0.concurrency = 2
            $0.maxUnconsumedBodies = 3
        }
        try await withDownloader(configure: configure) { downloader in
            let files = Files()
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<12 {
                    group.addTask {
                        let outcome = await downloader.download(DownloadRequest(url: origin.url("/\(number)")))
                        if let file = outcome.file { files.append(file) }
                    }
                }
                #expect(await eventually { downloader.counts.unconsumed == 3 && files.count == 3 })
                downloader.setLimits(concurrency: 8, limits: HostLimits(perHost: 8))
                #expect(await eventually { downloader.counts.unconsumed == 9 && files.count == 9 })
                downloader.setLimits(concurrency: 1, limits: HostLimits(perHost: 8))
                files.removeAll()
                #expect(await eventually { files.count == 2 })
                files.removeAll()
                #expect(await eventually { files.count == 1 })
            }
            files.removeAll()
        }
    }

    @Test func thousandsOfRequestsCanWait() async throws {
        let origin = try LoopbackOrigin { _ in .ok([1]) }
        try await withDownloader { downloader in
            let arrived = await withTaskGroup(of: Bool.self) { group in
                for number in 0..<3000 {
                    group.addTask {
                        let request = DownloadRequest(url: origin.url("/\(number)"), rank: Int64(number))
                        return await downloader.download(request).file != nil
                    }
                }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(arrived == 3000)
            #expect(origin.connectionCount <= 6)
        }
    }
}

/// Bodies that were not consumed yet.
private final class Files: Sendable {
    private let files = Mutex<[BodyFile]>([])

    var count: Int { files.withLock { $0.count } }
    var first: BodyFile? { files.withLock { $0.first } }

    func append(_ file: BodyFile) { files.withLock { $0.append(file) } }

    func removeAll() { files.withLock { $0.removeAll() } }
}
