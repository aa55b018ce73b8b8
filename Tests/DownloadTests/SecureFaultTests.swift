import Core
import Download
import SystemPackage
import TestSupport
import Testing

/// Every stage of a transfer over TLS and HTTP/2, broken in every way: each ends in its class, in its time.
@Suite(
    .timeLimit(.minutes(15)),
    .enabled(if: SecureOrigin.isAvailable, "python3-h2 or openssl is missing: run scripts/bootstrap"))
struct SecureFaultTests {
    struct Fault: Sendable, CustomTestStringConvertible {
        let port: SecureOrigin.Port
        var path = "/ok"
        let code: FailureClass

        init(_ port: SecureOrigin.Port, _ path: String = "/ok", _ code: FailureClass) {
            self.port = port
            self.path = path
            self.code = code
        }

        /// Whether it ends without anybody waiting for its time to be over.
        var isQuick: Bool { code != .timeout }

        var testDescription: String { "\(port.rawValue)\(path)" }
    }

    static let handshakes = [
        Fault(.expired, "/ok", .tlsCertificate), Fault(.wrong, "/ok", .tlsCertificate),
        Fault(.own, "/ok", .tlsCertificate), Fault(.closed, "/ok", .tlsHandshake),
        Fault(.nonsense, "/ok", .tlsHandshake), Fault(.cut, "/ok", .tlsHandshake),
        Fault(.silent, "/ok", .timeout), Fault(.old, "/ok", .tlsHandshake),
    ]

    static let records = [
        Fault(.good, "/404", .http(404)), Fault(.good, "/503", .http(503)), Fault(.good, "/loop", .tooManyRedirects),
        Fault(.good, "/away", .forbiddenAddress), Fault(.good, "/short", .connectionLost),
        Fault(.good, "/dropped", .connectionLost), Fault(.good, "/chunks", .connectionLost),
        Fault(.good, "/badchunk", .connectionLost), Fault(.good, "/reset", .connectionLost),
        Fault(.good, "/stall", .timeout), Fault(.good, "/silent", .timeout), Fault(.good, "/large", .tooLarge),
        Fault(.good, "/garbage", .connectionLost), Fault(.good, "/plain", .connectionLost),
        Fault(.good, "/headers", .tooLarge),
    ]

    static let frames = [
        Fault(.h2, "/404", .http(404)), Fault(.h2, "/429", .http(429)), Fault(.h2, "/503", .http(503)),
        Fault(.h2, "/loop", .tooManyRedirects), Fault(.h2, "/file", .invalidURL),
        Fault(.h2, "/goaway", .connectionLost), Fault(.h2, "/goaway-error", .connectionLost),
        Fault(.h2, "/goaway-late", .connectionLost), Fault(.h2, "/reset", .connectionLost),
        Fault(.h2, "/cancel", .connectionLost), Fault(.h2, "/calm", .connectionLost),
        Fault(.h2, "/reset-late", .connectionLost), Fault(.h2, "/short", .connectionLost),
        Fault(.h2, "/long", .connectionLost), Fault(.h2, "/cut", .connectionLost),
        Fault(.h2, "/noanswer", .connectionLost), Fault(.h2, "/stall", .timeout), Fault(.h2, "/silent", .timeout),
        Fault(.h2, "/large", .tooLarge), Fault(.h2, "/flood", .tooLarge), Fault(.h2, "/badframe", .connectionLost),
        Fault(.h2, "/hugeframe", .connectionLost), Fault(.h2, "/badheaders", .connectionLost),
        Fault(.h2, "/headers", .tooLarge), Fault(.h2, "/gzip", .truncated),
        Fault(.h2, "/plain", .connectionLost),
    ]

    @Test(arguments: [handshakes, records, frames]) func aFaultOverTLSEndsInItsClass(_ faults: [Fault]) async throws {
        try await withTemporaryDirectory { scratch in
            let origin = try SecureOrigin(scratch: scratch)
            defer { origin.stop() }
            try await withDownloader(configure: {
                $0.caFile = origin.caFile.string
                $0.connectTimeout = .milliseconds(1_500)
                $0.silenceTimeout = .milliseconds(1_500)
                $0.totalTimeout = .seconds(20)
                $0.maxBodyBytes = 1 << 20
                $0.concurrency = 64
                $0.perHost = 64
                $0.circuitBreaker.failures = 1_000
            }) { downloader in
                // One after the other: on a connection that they share, one would break the others.
                for fault in faults {
                    let started = ContinuousClock.now
                    let outcome = await downloader.download(DownloadRequest(url: origin.url(fault.port, fault.path)))
                    #expect(outcome.code == fault.code, "\(fault.testDescription): \(outcome.failure?.message ?? "")")
                    #expect(outcome.failure?.message.isEmpty == false)
                    #expect(ContinuousClock.now - started < .seconds(30))
                }
            }
        }
    }

    /// In a process of its own, without the memory of other tests.
    @Test func faultsOverTLSLeakNoMemory() async {
        await #expect(processExitsWith: .success) {
            try await withTemporaryDirectory { scratch in
                let origin = try SecureOrigin(scratch: scratch)
                defer { origin.stop() }
                try await withDownloader(configure: {
                    $0.caFile = origin.caFile.string
                    $0.maxBodyBytes = 1 << 20
                    $0.circuitBreaker.failures = 10_000
                }) { downloader in
                    let faults = (SecureFaultTests.handshakes + SecureFaultTests.records + SecureFaultTests.frames)
                        .filter(\.isQuick)
                    func round() async {
                        for fault in faults {
                            _ = await downloader.download(DownloadRequest(url: origin.url(fault.port, fault.path)))
                        }
                    }
                    for _ in 0..<3 { await round() }
                    let before = residentBytes()
                    for _ in 0..<12 { await round() }
                    #expect(residentBytes() - before < 16 << 20)
                }
            }
        }
    }

    @Test func intactResponsesOverTLSAreDelivered() async throws {
        try await withTemporaryDirectory { scratch in
            let origin = try SecureOrigin(scratch: scratch)
            defer { origin.stop() }
            try await withDownloader(configure: { $0.caFile = origin.caFile.string }) { downloader in
                let first = await downloader.download(DownloadRequest(url: origin.url(.good)))
                #expect(first.file?.size == 1_000)
                #expect(first.response?.httpVersion == "1.1")
                let second = await downloader.download(DownloadRequest(url: origin.url(.h2)))
                #expect(second.file?.size == 1_000)
                #expect(second.response?.httpVersion == "2")
                for port in [SecureOrigin.Port.expired, .wrong, .own] {
                    var request = DownloadRequest(url: origin.url(port))
                    request.allowInvalidCertificates = true
                    #expect(await downloader.download(request).file?.size == 1_000)
                }
            }
        }
    }

    /// A connection with a GOAWAY is not reused, and the next request opens another.
    @Test func aGoawayFailsNoOtherRequest() async throws {
        try await withTemporaryDirectory { scratch in
            let origin = try SecureOrigin(scratch: scratch)
            defer { origin.stop() }
            try await withDownloader(configure: { $0.caFile = origin.caFile.string }) { downloader in
                for path in ["/ok", "/goaway-error", "/ok", "/reset", "/ok"] {
                    let outcome = await downloader.download(DownloadRequest(url: origin.url(.h2, path)))
                    #expect((outcome.file != nil) == (path == "/ok"), "\(path)")
                }
            }
        }
    }

    @Test func manyRequestsShareAConnection() async throws {
        try await withTemporaryDirectory { scratch in
            let origin = try SecureOrigin(scratch: scratch)
            defer { origin.stop() }
            try await withDownloader(configure: { $0.caFile = origin.caFile.string }) { downloader in
                let handshakes = await withTaskGroup(of: Bool.self) { group in
                    for _ in 0..<30 {
                        group.addTask {
                            let outcome = await downloader.download(DownloadRequest(url: origin.url(.h2)))
                            #expect(outcome.file?.size == 1_000, "\(outcome.failure?.message ?? "")")
                            return outcome.response.map { $0.timings.tls > .zero } ?? false
                        }
                    }
                    return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
                }
                #expect(handshakes <= 6)
            }
        }
    }
}
