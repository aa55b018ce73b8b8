import Core
import Download
import Jobs
import PrefetchWorker
import Synchronization
import TestSupport
import Testing

/// The reports on transfers that an embedding program gets.
@Suite(.timeLimit(.minutes(15))) struct TransferReportTests {
    private final class Reports: Sendable {
        private let all = Mutex<[TransferReport]>([])

        func add(_ report: TransferReport) { all.withLock { $0.append(report) } }

        func of(_ url: String) -> [TransferReport] { all.withLock { $0.filter { $0.url == url } } }

        func count() -> Int { all.withLock { $0.count } }
    }

    private struct Box: ImageLoader {
        func canLoad(_ url: String) -> Bool { url.hasPrefix("box:") }

        func load(_ request: LoaderRequest, into body: any LoaderBody) async throws -> LoaderResponse {
            guard request.url != "box:none" else { throw Failure(.http(404), "It isn't in the box.") }
            try body.expect(Int64(Pictures.jpeg.count))
            try await body.write(Pictures.jpeg)
            return LoaderResponse()
        }
    }

    @Test func `Every transfer has a first and a last report, however short`() async throws {
        let size = Int64(Pictures.jpeg.count)
        let origin = try LoopbackOrigin { request in
            request.path == "/broken" ? .reset(afterBytes: 900, of: 5_000) : .ok(Pictures.jpeg)
        }
        let reports = Reports()
        try await withWorkplace(configure: {
            $0.onTransfer = { reports.add($0) }
            $0.loaders = [Box()]
            $0.retries.maxTries = 1
        }) { (place) async throws in
            let urls = [origin.url("/whole"), "box:a", origin.url("/broken"), origin.url("/again"), "box:none"]
            _ = try await place.enqueue(urls)
            try await place.drain()
            for (url, source) in [(urls[0], SourceOrigin.network), ("box:a", .loader)] {
                let told = reports.of(url)
                #expect(told.map(\.stage) == [.began, .ended])
                #expect(told.allSatisfy { $0.origin == source })
                #expect(told.last.map { [$0.received, $0.expected ?? -1] } == [size, size])
                #expect(told.first?.received == 0)
            }
            // A body that breaks off begins and fails.
            let broken = reports.of(urls[2])
            #expect((broken.first?.stage, broken.last?.stage) == (.began, .failed))
            // A reset may take away bytes that had arrived.
            #expect(broken.last.map { (0...900).contains($0.received) && $0.expected == 5_000 } == true)
            #expect(reports.of("box:none").map(\.stage) == [.began, .failed])
        }
    }

    @Test func `Reports in between keep to their interval, and their bytes never decrease`() async throws {
        let bytes = TestImages.png(200, 200)
        let origin = try LoopbackOrigin { _ in .slowly(bytes, pieces: 20, pause: 50) }
        let reports = Reports()
        try await withWorkplace(configure: {
            $0.onTransfer = { reports.add($0) }
            $0.downloads.progressInterval = .milliseconds(200)
        }) { (place) async throws in
            _ = try await place.enqueue([origin.url("/slow")])
            try await place.drain()
            let told = reports.of(origin.url("/slow"))
            #expect((told.first?.stage, told.last?.stage) == (.began, .ended))
            let between = told.dropFirst().dropLast()
            // A second in pieces of 50 ms: no more than one report in 200 ms, and at least one.
            #expect((1...8).contains(between.count))
            #expect(between.allSatisfy { $0.stage == .continued })
            #expect(told.map(\.received) == told.map(\.received).sorted())
        }
    }

    @Test func `A cached source is reported as disk, then as memory`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        let reports = Reports()
        try await withWorkplace(configure: { $0.onTransfer = { reports.add($0) } }) { (place) async throws in
            let url = origin.url("/a")
            let jobs = try await place.enqueue([url])
            try await place.drain()
            let told = reports.count()
            _ = try await place.enqueue([url], variants: "a=10x,webp")
            _ = try await place.enqueue([url], variants: "b=12x,webp")
            try await place.drain()
            #expect(reports.of(url).dropFirst(told).map(\.origin) == [.disk, .disk, .memory, .memory])
            #expect(try await place.store.reports.results(job: jobs, after: 0, limit: 1).first?.bytesFrom == .network)
        }
    }

    @Test(.enabled(if: Workplace.isBuilt, Workplace.notBuilt))
    func `A picture that arrives slowly is shown before it is whole`() async throws {
        let png = TestImages.png(400, 300)
        let origin = try LoopbackOrigin { _ in .slowly(png, pieces: 12, pause: 300) }
        let previews = Mutex<[Preview]>([])
        try await withWorkplace(configure: {
            $0.onPreview = { preview in previews.withLock { $0.append(preview) } }
        }) { (place) async throws in
            _ = try await place.store.queue.enqueue(NewJob(urls: [origin.url("/a.png")], options: "progressive"))
            try await place.drain()
        }
        let shown = previews.withLock { $0 }
        #expect(!shown.isEmpty)
        for preview in shown {
            #expect(preview.url == origin.url("/a.png") && preview.expected == Int64(png.count))
            #expect(preview.received < Int64(png.count) && preview.image.starts(with: "RIFF".utf8))
        }
    }
}
