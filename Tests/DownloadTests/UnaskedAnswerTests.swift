import Core
import Download
import TestSupport
import Testing

/// Responses without a request, and truncated compressed bodies.
@Suite(.timeLimit(.minutes(15))) struct UnaskedAnswerTests {
    private static let late = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"

    @Test func aLateSecondResponseIsNotTakenForTheNextRequests() async throws {
        let origin = try LoopbackOrigin { request in
            .answersTwice(Array("right \(request.path)".utf8), late: Self.late, milliseconds: 50)
        }
        try await withDownloader { downloader in
            for number in 0..<12 {
                let outcome = await downloader.download(DownloadRequest(url: origin.url("/\(number)")))
                let bytes = try outcome.file?.bytes() ?? []
                #expect(String(decoding: bytes, as: UTF8.self) == "right /\(number)")
                try await Task.sleep(for: .milliseconds(120))
            }
        }
    }

    @Test func theConnectionsOfAnOrderlyHostAreReused() async throws {
        let origin = try LoopbackOrigin { _ in .ok([1, 2, 3]) }
        try await withDownloader { downloader in
            for number in 0..<20 {
                let outcome = await downloader.download(DownloadRequest(url: origin.url("/\(number)")))
                #expect(outcome.file?.size == 3)
            }
            #expect(origin.connectionCount == 1)
        }
    }

    @Test(arguments: ["gzip", "x-gzip", "GZIP"]) func aCompressedBodyThatEndsEarlyIsTruncated(_ coding: String)
        async throws
    {
        let packed = try gzip(of: 100_000)
        let headers = [(name: "Content-Encoding", value: coding)]
        let origin = try LoopbackOrigin { request in
            let cut = Int(request.path.dropFirst()) ?? 0
            return .ok(Array(packed.dropLast(cut)), headers: headers)
        }
        try await withDownloader { downloader in
            let whole = await downloader.download(DownloadRequest(url: origin.url("/0")))
            #expect(whole.file?.size == 100_000)
            // The checksum, a part of it, the last of the bytes, nearly all.
            for cut in [8, 1, 4, 9, 20, packed.count - 3] {
                let outcome = await downloader.download(DownloadRequest(url: origin.url("/\(cut)")))
                #expect(outcome.code == .truncated, "\(cut)")
            }
        }
    }

    @Test func severalGzipMembersAreDecodedAndPaddingIsIgnored() async throws {
        let packed = try gzip(of: 1_000)
        let origin = try LoopbackOrigin { request in
            .ok(
                request.path == "/two" ? packed + packed : packed + [0, 0, 0],
                headers: [("Content-Encoding", "gzip")])
        }
        try await withDownloader { downloader in
            #expect(await downloader.download(DownloadRequest(url: origin.url("/two"))).file?.size == 2_000)
            #expect(await downloader.download(DownloadRequest(url: origin.url("/padded"))).file?.size == 1_000)
        }
    }

    @Test func anUnknownContentEncodingIsIgnored() async throws {
        let origin = try LoopbackOrigin { _ in .ok([1, 2, 3], headers: [("Content-Encoding", "utf-8")]) }
        try await withDownloader { downloader in
            #expect(await downloader.download(DownloadRequest(url: origin.url("/a"))).file?.size == 3)
        }
    }
}
