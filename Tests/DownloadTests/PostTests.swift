import Core
import Download
import TestSupport
import Testing

/// Requests with a body.
@Suite(.timeLimit(.minutes(15))) struct PostTests {
    @Test func `A body is sent by POST, and the next request on the connection is a GET without one`() async throws {
        let origin = try LoopbackOrigin { _ in .ok([1]) }
        try await withDownloader(configure: { $0.concurrency = 1 }) { (downloader) async throws -> Void in
            for turn in 0..<6 {
                var request = DownloadRequest(
                    url: origin.url("/\(turn)"), headers: [("Content-Type", "application/json")])
                if turn.isMultiple(of: 2) { request.body = Array("{\"turn\":\(turn)}\u{0}ü".utf8) }
                #expect(await downloader.download(request).file != nil)
            }
        }
        #expect(origin.requests.map(\.method) == ["POST", "GET", "POST", "GET", "POST", "GET"])
        #expect(
            origin.requests.map { String(decoding: $0.body, as: UTF8.self) }
                == ["{\"turn\":0}\u{0}ü", "", "{\"turn\":2}\u{0}ü", "", "{\"turn\":4}\u{0}ü", ""])
        #expect(origin.requests.allSatisfy { $0.header("Content-Type") == "application/json" })
    }

    @Test func `An empty body is sent by POST, and its redirect can be refused`() async throws {
        let origin = try LoopbackOrigin { request in
            request.path == "/moved" ? .redirect(to: "/a") : .status(204)
        }
        try await withDownloader(configure: { $0.maxRedirects = 0 }) { (downloader) async throws -> Void in
            var request = DownloadRequest(url: origin.url("/a"))
            request.body = []
            #expect(await downloader.download(request).response?.status == 204)
            request.url = origin.url("/moved")
            #expect(await downloader.download(request).code == .tooManyRedirects)
        }
        #expect(origin.requests.map(\.path) == ["/a", "/moved"])
        #expect(origin.requests.map(\.method) == ["POST", "POST"])
    }
}
