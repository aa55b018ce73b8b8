import Core
import SystemPackage
import TestSupport
import Testing

@testable import Download

/// Whose connections are used again.
@Suite(.timeLimit(.minutes(15))) struct KnownConnectionsTests {
    @Test func aHostIsDistrustedForAnHour() {
        let (connections, now) = (KnownConnections(), ContinuousClock.now)
        connections.distrust("a.example", now: now)
        #expect(!connections.distrusts("b.example", now: now))
        #expect(connections.distrusts("a.example", now: now + .seconds(3_599)))
        connections.distrust("a.example", now: now + .seconds(3_599))
        #expect(connections.distrusts("a.example", now: now + .seconds(7_198)))
        #expect(!connections.distrusts("a.example", now: now + .seconds(7_199)))
        #expect(!connections.distrusts("a.example", now: now))
    }

    /// TLS says farewell before it closes, and may send tickets until then. What is as short as a ticket may be one; an answer
    /// that is longer is seen to be one.
    @Test(
        .enabled(if: SecureOrigin.isAvailable, "python3-h2 or openssl is missing: run scripts/bootstrap"),
        arguments: [
            ("/farewell", true), ("/last", true), ("/ticket", true), ("/late", true), ("/late-large", false),
        ])
    func aHostThatClosesAnIdleConnectionKeepsTheNextOnes(_ path: String, _ isTrusted: Bool) async throws {
        try await withTemporaryDirectory { folder in
            let origin = try SecureOrigin(scratch: folder)
            defer { origin.stop() }
            try await withDownloader(configure: { $0.caFile = origin.caFile.string }) { downloader in
                let first = await downloader.download(DownloadRequest(url: origin.url(.good, path)))
                #expect(first.file?.size == 1_000)
                try await Task.sleep(for: .milliseconds(500))
                var handshakes: [Duration] = []
                for _ in 0..<3 {
                    let outcome = await downloader.download(DownloadRequest(url: origin.url(.good)))
                    #expect(outcome.file?.size == 1_000)
                    handshakes += outcome.response.map { [$0.timings.tls] } ?? []
                }
                #expect(handshakes.first ?? .zero > .zero)
                #expect((handshakes.last == .zero) == isTrusted)
            }
        }
    }
}
