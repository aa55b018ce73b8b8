import Core
import Download
import SystemPackage
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15)), .enabled(if: Nginx.isAvailable)) struct SecureTests {
    private func withNginx(_ body: (Nginx) async throws -> Void) async throws {
        try await withTemporaryDirectory { folder in
            try await withTemporaryDirectory { scratch in
                let file = try FileDescriptor.open(
                    folder.appending("a.bin"), .writeOnly, options: .create,
                    permissions: [.ownerReadWrite, .groupRead, .otherRead],
                )
                try file.closeAfter { _ = try file.writeAll([UInt8](repeating: 7, count: 300_000)) }
                let nginx = try Nginx(serving: folder, scratch: scratch)
                defer { nginx.stop() }
                try await body(nginx)
            }
        }
    }

    @Test func aGivenAuthorityIsTrusted() async throws {
        try await withNginx { nginx in
            try await withDownloader(configure: { $0.caFile = nginx.caFile.string }) { downloader in
                let outcome = await downloader.download(DownloadRequest(url: nginx.secureURL("/a.bin")))
                #expect(outcome.file?.size == 300_000)
                #expect(outcome.response.map { $0.timings.tls > .zero } == true)
                let etag = outcome.response?.etag
                let again = await downloader.download(DownloadRequest(url: nginx.secureURL("/a.bin"), etag: etag))
                #expect(again.response?.status == 304)
                #expect(again.response?.timings.tls == .zero)
                #expect(await downloader.download(DownloadRequest(url: nginx.url("/a.bin"))).file?.size == 300_000)
                #expect(await downloader.download(DownloadRequest(url: nginx.url("/b.bin"))).code == .http(404))
            }
        }
    }

    @Test func anUnknownAuthorityIsRefusedUnlessAllowed() async throws {
        try await withNginx { nginx in
            try await withDownloader { downloader in
                var request = DownloadRequest(url: nginx.secureURL("/a.bin"))
                request.allowInvalidCertificates = true
                #expect(await downloader.download(request).file?.size == 300_000)
                // The connection made without checks must not be used for this.
                request.allowInvalidCertificates = false
                #expect(await downloader.download(request).code == .tlsCertificate)
            }
        }
    }

    @Test func anotherHostsCertificateIsRefused() async throws {
        try await withNginx { nginx in
            let configure: (inout DownloadConfiguration) -> Void = { $0.caFile = nginx.caFile.string }
            try await withDownloader(configure: configure) { downloader in
                let url = "https://127.0.0.1.:\(nginx.httpsPort)/a.bin"
                let outcome = await downloader.download(DownloadRequest(url: url))
                #expect(outcome.code == .tlsCertificate || outcome.code == .dns)
            }
        }
    }

    @Test func aMissingAuthorityFileIsRefusedAtOnce() {
        var configuration = DownloadConfiguration()
        configuration.caFile = "/nonexistent/ca.pem"
        #expect {
            try Downloader(configuration: configuration, makeFile: unnamedFile, inspect: { _ in .accept })
        } throws: {
            ($0 as? Failure)?.hasAsked == false
        }
    }
}
