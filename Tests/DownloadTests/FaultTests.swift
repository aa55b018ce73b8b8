import Core
import Download
import SystemPackage
import TestSupport
import Testing

/// Every fault of an origin ends in its class, soon.
@Suite(.timeLimit(.minutes(15))) struct FaultTests {
    struct Fault: Sendable, CustomTestStringConvertible {
        let reply: LoopbackReply
        let code: FailureClass
        var testDescription: String { "\(code)" }
    }

    static let faults = [
        Fault(reply: .reset(afterBytes: 1000, of: 5000), code: .connectionLost),
        Fault(reply: .reset(afterBytes: 0, of: 5000), code: .connectionLost),
        Fault(reply: .closeEarly(afterBytes: 1000, of: 5000), code: .connectionLost),
        Fault(reply: .chunkedCut(bytes: 1000), code: .connectionLost),
        Fault(reply: .status(99), code: .connectionLost), Fault(reply: .status(101, body: [1]), code: .connectionLost),
        Fault(reply: .status(199), code: .timeout), Fault(reply: .status(600), code: .http(600)),
        Fault(reply: .status(999), code: .http(999)),
        Fault(reply: .noReply, code: .connectionLost),
        Fault(reply: .garbage, code: .connectionLost),
        Fault(reply: .silence, code: .timeout),
        Fault(reply: .stall(afterBytes: 1000), code: .timeout),
        Fault(reply: .delayed(milliseconds: 2000, then: .ok([1])), code: .timeout),
        Fault(reply: .drip(bytesPerSecond: 200, of: 100_000), code: .timeout),
        Fault(reply: .hugeHeaders(bytes: 70_000), code: .tooLarge),
        Fault(reply: .hugeHeaders(bytes: 80_000, inOneLine: true), code: .tooLarge),
        Fault(reply: .hugeHeaders(bytes: 200_000, inOneLine: true), code: .tooLarge),
        Fault(reply: .hugeHeaders(bytes: 5_000_000), code: .tooLarge),
        Fault(reply: .chunked(totalBytes: 1 << 30), code: .tooLarge),
        Fault(reply: .closeEarly(afterBytes: 0, of: 1 << 30), code: .tooLarge),
        Fault(reply: .ok([1, 2, 3], headers: [("Content-Encoding", "gzip")]), code: .truncated),
        Fault(reply: .ok([1, 2, 3], headers: [("Content-Encoding", "rot13")]), code: .truncated),
    ]

    @Test(arguments: faults)
    func aFaultOfTheOriginEndsInItsClass(_ fault: Fault) async throws {
        let origin = try LoopbackOrigin { _ in fault.reply }
        try await withDownloader(configure: {
            // Only what ends by them: on a busy machine others might, too.
            if fault.code == .timeout {
                $0.silenceTimeout = .milliseconds(300)
                $0.totalTimeout = .milliseconds(1200)
            }
            $0.maxBodyBytes = 1 << 20
        }) { downloader in
            let clock = ContinuousClock()
            let started = clock.now
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/")))
            #expect(outcome.code == fault.code)
            #expect(outcome.failure?.message.contains("127.0.0.1") == true)
            #expect(clock.now - started < .seconds(60))
        }
    }

    /// Without any other event that would wake the thread.
    @Test func aSilentOriginTimesOut() async throws {
        let origin = try LoopbackOrigin { _ in .silence }
        try await withDownloader(configure: { $0.silenceTimeout = .milliseconds(300) }) { downloader in
            let started = ContinuousClock.now
            #expect(await downloader.download(DownloadRequest(url: origin.url("/"))).code == .timeout)
            #expect(ContinuousClock.now - started < .seconds(30))
        }
    }

    @Test func aRefusedConnectionHasTheClassConnect() async throws {
        let port = try LoopbackOrigin.unusedPort()
        try await withDownloader { downloader in
            let outcome = await downloader.download(DownloadRequest(url: "http://127.0.0.1:\(port)/"))
            #expect(outcome.code == .connect)
            #expect(outcome.response == nil)
        }
    }

    @Test func anUnknownNameHasTheClassDNS() async throws {
        try await withDownloader { downloader in
            let outcome = await downloader.download(DownloadRequest(url: "http://no-such-host.invalid/"))
            #expect(outcome.code == .dns)
            #expect(outcome.failure?.message.contains("no-such-host.invalid") == true)
        }
    }

    @Test func anInvalidURLNeverReachesTheNetwork() async throws {
        try await withDownloader { downloader in
            #expect(await downloader.download(DownloadRequest(url: "ftp://127.0.0.1/")).code == .invalidURL)
            let long = "http://127.0.0.1/" + String(repeating: "x", count: 8192)
            #expect(await downloader.download(DownloadRequest(url: long)).code == .invalidURL)
        }
    }

    @Test func plainTextOnATLSPortFailsTheHandshake() async throws {
        let origin = try LoopbackOrigin { _ in .ok([1]) }
        try await withDownloader { downloader in
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/", scheme: "https")))
            #expect(outcome.code == .tlsHandshake)
        }
    }

    @Test func theBodyOfAnErrorDoesNotDelayItsStatus() async throws {
        let long = [UInt8](repeating: 0x78, count: 1 << 20)
        let origin = try LoopbackOrigin { $0.path == "/long" ? .status(500, body: long) : .status(404) }
        try await withDownloader { downloader in
            #expect(await downloader.download(DownloadRequest(url: origin.url("/long"))).code == .http(500))
            #expect(downloader.counts.bytes < 300_000)
        }
    }

    @Test func aCompressedBodyIsLimitedByItsDecodedBytes() async throws {
        // 3 MiB of zeros, packed into a few kilobytes.
        let bomb = try gzip(of: 3 << 20)
        let origin = try LoopbackOrigin { _ in .ok(bomb, headers: [("Content-Encoding", "gzip")]) }
        try await withDownloader(configure: {
            $0.maxBodyBytes = 1 << 20
        }) { downloader in
            #expect(await downloader.download(DownloadRequest(url: origin.url("/"))).code == .tooLarge)
        }
        try await withDownloader { downloader in
            #expect(await downloader.download(DownloadRequest(url: origin.url("/"))).file?.size == 3 << 20)
        }
    }

    /// In a process of its own, without the memory of other tests.
    @Test func anEndlessBodyNeedsLittleMemory() async {
        await #expect(processExitsWith: .success) {
            let origin = try LoopbackOrigin { _ in .chunked(totalBytes: 1 << 30) }
            let makeFile: @Sendable () throws -> FileDescriptor = { try FileDescriptor.open("/dev/null", .readWrite) }
            try await withDownloader(makeFile: makeFile, configure: { $0.maxBodyBytes = 400 << 20 }) { downloader in
                let before = residentBytes()
                let outcome = await downloader.download(DownloadRequest(url: origin.url("/")))
                #expect(outcome.code == .tooLarge)
                #expect(residentBytes() - before < 64 << 20)
            }
        }
    }

    /// Every fault many times, many at once; the origin is in the same process.
    @Test func faultsLeakNoMemory() async {
        await #expect(processExitsWith: .success) {
            let origin = try LoopbackOrigin { request in
                Int(request.path.dropFirst()).map { FaultTests.faults[$0].reply } ?? .status(404)
            }
            try await withDownloader(configure: {
                $0.silenceTimeout = .milliseconds(200)
                $0.totalTimeout = .milliseconds(800)
                $0.maxBodyBytes = 1 << 20
                ($0.concurrency, $0.perHost) = (16, 16)
                $0.circuitBreaker.failures = 100_000
            }) { downloader in
                func round(_ count: Int) async {
                    await withTaskGroup(of: Void.self) { group in
                        for index in 0..<count * FaultTests.faults.count {
                            let url = origin.url("/\(index % FaultTests.faults.count)")
                            group.addTask { _ = await downloader.download(DownloadRequest(url: url)) }
                        }
                    }
                }
                await round(12)
                let before = residentBytes()
                await round(48)
                #expect(residentBytes() - before < 32 << 20)
            }
        }
    }

    /// The address space shows memory that each response leaks, also memory that has never been written to.
    @Test func responsesLeakNoMemory() async {
        await #expect(processExitsWith: .success) {
            let packed = try gzip(of: 2_000)
            let origin = try LoopbackOrigin { request in
                switch request.path {
                case "/plain": .ok([UInt8](repeating: 1, count: 500))
                case "/packed": .ok(packed, headers: [("Content-Encoding", "gzip")])
                default: .ok([1, 2, 3], headers: [("Content-Encoding", "utf-8")])
                }
            }
            try await withDownloader(configure: { ($0.concurrency, $0.perHost) = (16, 16) }) { downloader in
                func round(_ count: Int) async {
                    await withTaskGroup(of: Void.self) { group in
                        for number in 0..<count {
                            let url = origin.url(["/plain", "/packed", "/odd"][number % 3])
                            group.addTask {
                                let outcome = await downloader.download(DownloadRequest(url: url))
                                #expect(outcome.file != nil)
                            }
                        }
                    }
                }
                await round(600)
                let before = addressedBytes()
                await round(3_000)
                #expect(addressedBytes() - before < 64 << 20)
            }
        }
    }
}
