import Core
import Download
import SystemPackage
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15))) struct LifecycleTests {
    @Test func aRunningTransferIsCancelled() async throws {
        let origin = try LoopbackOrigin { _ in .stall(afterBytes: 1000) }
        // No timeout is shorter than the suite's limit.
        let configure: (inout DownloadConfiguration) -> Void = {
            $0.silenceTimeout = .seconds(7_200)
            $0.totalTimeout = .seconds(7_200)
        }
        try await withDownloader(configure: configure) { downloader in
            let task = Task { await downloader.download(DownloadRequest(url: origin.url("/"))) }
            #expect(await eventually { origin.requests.count == 1 && origin.openConnections == 1 })
            task.cancel()
            #expect(await task.value.code == .cancelled)
            #expect(downloader.counts.running == 0)
            #expect(await eventually { origin.openConnections == 0 })
        }
    }

    @Test func waitingTransfersAreCancelled() async throws {
        let origin = try LoopbackOrigin { $0.path == "/first" ? .silence : .ok([1]) }
        try await withDownloader(configure: { $0.concurrency = 1 }) { downloader in
            let first = Task { await downloader.download(DownloadRequest(url: origin.url("/first"))) }
            #expect(await eventually { origin.requests.count == 1 })
            let waiting = (0..<100).map { number in
                Task { await downloader.download(DownloadRequest(url: origin.url("/\(number)"))) }
            }
            #expect(await eventually { downloader.counts.waiting == 100 })
            for task in waiting.dropLast() { task.cancel() }
            for task in waiting.dropLast() { #expect(await task.value.code == .cancelled) }
            first.cancel()
            #expect(await waiting.last?.value.file?.size == 1)
            #expect(origin.requests.map(\.path) == ["/first", "/99"])
        }
    }

    @Test func aCancelledTaskStartsNoTransfer() async throws {
        let origin = try LoopbackOrigin { _ in .ok([1]) }
        try await withDownloader { downloader in
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return await downloader.download(DownloadRequest(url: origin.url("/")))
            }
            #expect(await task.value.code == .cancelled)
            #expect(origin.requests.isEmpty)
        }
    }

    /// Cancellations at any moment: before, while waiting, while running, after the end. Each call ends once.
    @Test func aCancellationAtAnyTimeEndsTheCallOnce() async throws {
        let origin = try LoopbackOrigin { _ in .ok([UInt8](repeating: 1, count: 50_000)) }
        try await withDownloader { downloader in
            for round in 0..<300 {
                let task = Task { await downloader.download(DownloadRequest(url: origin.url("/\(round)"))) }
                for _ in 0..<(round % 60) * 20 { await Task.yield() }
                task.cancel()
                let outcome = await task.value
                #expect(outcome.file != nil || outcome.code == .cancelled)
            }
            #expect(await eventually { downloader.counts.unconsumed == 0 })
        }
    }

    @Test func shutdownEndsAllTransfers() async throws {
        let origin = try LoopbackOrigin { _ in .silence }
        try await withDownloader(configure: { $0.concurrency = 3 }) { downloader in
            let tasks = (0..<20).map { number in
                Task { await downloader.download(DownloadRequest(url: origin.url("/\(number)"))) }
            }
            #expect(await eventually { downloader.counts.running == 3 && downloader.counts.waiting == 17 })
            async let other: Void = downloader.shutdown()
            await downloader.shutdown()
            await other
            for task in tasks { #expect(await task.value.code == .cancelled) }
            #expect(await downloader.download(DownloadRequest(url: origin.url("/late"))).code == .cancelled)
            #expect(origin.requestCount("/late") == 0)
        }
    }

    @Test func bodiesOutliveTheirDownloader() async throws {
        let origin = try LoopbackOrigin { _ in .ok([1, 2, 3]) }
        let file = try await withDownloader { downloader in
            try #require(await downloader.download(DownloadRequest(url: origin.url("/"))).file)
        }
        #expect(try file.bytes() == [1, 2, 3])
        let taken = file.takeDescriptor()
        file.markConsumed()
        #expect(try taken.seek(offset: 0, from: .end) == 3)
        try taken.close()
    }

    @Test func aRequestAfterAFailureWorks() async throws {
        let origin = try LoopbackOrigin(script: ["/a": [.status(500), .noReply, .noReply, .ok([1])]])
        try await withDownloader { downloader in
            #expect(await downloader.download(DownloadRequest(url: origin.url("/a"))).code == .http(500))
            // libcurl itself asks once more when a reused connection turns out to be closed.
            #expect(await downloader.download(DownloadRequest(url: origin.url("/a"))).code == .connectionLost)
            #expect(await downloader.download(DownloadRequest(url: origin.url("/a"))).file?.size == 1)
            #expect(origin.requestCount("/a") == 4)
        }
    }

    @Test func connectionsAreReused() async throws {
        let origin = try LoopbackOrigin { $0.path.hasSuffix("0") ? .status(404, body: [1, 2, 3]) : .ok([1]) }
        try await withDownloader { downloader in
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<200 {
                    group.addTask { _ = await downloader.download(DownloadRequest(url: origin.url("/\(number)"))) }
                }
            }
            #expect(origin.requests.count == 200)
            #expect(origin.connectionCount <= 6)
        }
    }
}
