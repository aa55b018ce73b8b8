import SystemPackage
import TestSupport
import Testing

@testable import Download

/// Partial bodies of truncated transfers, which are kept within limits of size and time.
@Suite(.timeLimit(.minutes(15))) struct PartialTests {
    private func key(_ path: String) throws -> PartialKey {
        let url = try DownloadURL("http://a.example\(path)", maxBytes: 100)
        return PartialKey(
            QueuedTransfer(
                id: 1, request: DownloadRequest(url: url.text), hop: Hop(url: url), beginning: url,
                onRedirect: { _ in }, answer: { _ in }))
    }

    private func partial(_ bytes: Int, in folder: FilePath) throws -> Partial {
        let writer = BodyWriter(try unnamedFile(in: folder))
        try [UInt8](repeating: 1, count: bytes).withUnsafeBytes { try writer.write($0) }
        return Partial(url: "", etag: "\"1\"", writer: writer, total: nil)
    }

    /// Also if no more downloads run.
    @Test func theFileOfAnOldPartialBodyIsClosed() throws {
        try withTemporaryDirectory { folder in
            var store = PartialStore(bytes: 1_000)
            store.keep(try partial(10, in: folder), try key("/a"))
            var later = try partial(10, in: folder)
            later.since += .seconds(60)
            store.keep(later, try key("/b"))
            #expect(openFiles(in: folder) == 2)
            store.forgetOld(now: .now + .seconds(500))
            #expect(store.count == 2)
            store.forgetOld(now: .now + .seconds(620))
            #expect(openFiles(in: folder) == 1)
            #expect(store.take(try key("/a")) == nil)
            #expect(store.take(try key("/b"))?.writer.size == 10)
            #expect(store.count == 0)
        }
    }

    @Test func theOldestPartialBodiesAreForgottenFirst() throws {
        try withTemporaryDirectory { folder in
            var store = PartialStore(bytes: 1_000)
            for number in 0..<5 { store.keep(try partial(300, in: folder), try key("/\(number)")) }
            #expect(store.count == 3)
            #expect(openFiles(in: folder) == 3)
            store.keep(try partial(1_001, in: folder), try key("/large"))
            #expect(store.count == 0)
            #expect(openFiles(in: folder) == 0)
        }
    }
}
