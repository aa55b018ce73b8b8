import Download
import SystemPackage
import TestSupport
import Testing

/// Other tests open descriptors in this process, too, so files are identified by their folder, and sockets by their
/// peers.
@Suite(.timeLimit(.minutes(15)), .serialized) struct LeakTests {
    @Test func faultsLeakNoDescriptors() async throws {
        let origin = try LoopbackOrigin { request in
            switch Int(request.path.dropFirst()).map({ $0 % 5 }) {
            case 0: .ok([1])
            case 1: .status(404)
            case 2: .closeEarly(afterBytes: 100, of: 200)
            case 3: .reset(afterBytes: 100, of: 200)
            default: .redirect(to: "/0")
            }
        }
        try await withTemporaryDirectory { folder in
            let makeFile: @Sendable () throws -> FileDescriptor = { try unnamedFile(in: folder) }
            try await withDownloader(makeFile: makeFile, configure: { $0.maxUnconsumedBodies = 100 }) { downloader in
                let files = await withTaskGroup(of: BodyFile?.self) { group in
                    for number in 0..<100 {
                        group.addTask { await downloader.download(DownloadRequest(url: origin.url("/\(number)"))).file }
                    }
                    return await group.reduce(into: []) { $0.append($1) }.compactMap(\.self)
                }
                #expect(files.count == 40)
                #expect(openFiles(in: folder) == 40)
            }
            #expect(openFiles(in: folder) == 0)
        }
    }
}
