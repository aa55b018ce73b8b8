import Core
import Download
import ImageFiles
import Imaging
import Jobs
import PrefetchWorker
import Synchronization
import TestSupport
import Testing

/// Loaders: URLs that the embedding program serves itself.
@Suite("Loaders", .timeLimit(.minutes(15)))
struct LoaderTests {
    /// Serves `box:` URLs from memory, in pieces.
    private final class Box: ImageLoader {
        let pictures: [String: [UInt8]]
        let asked = Mutex<[LoaderRequest]>([])
        let answer: @Sendable (LoaderRequest) -> LoaderResponse
        let failure: (any Error)?
        let pause: Duration

        init(
            _ pictures: [String: [UInt8]] = [:], failure: (any Error)? = nil, pause: Duration = .zero,
            answer: @escaping @Sendable (LoaderRequest) -> LoaderResponse = { _ in LoaderResponse() },
        ) {
            (self.pictures, self.failure, self.pause, self.answer) = (pictures, failure, pause, answer)
        }

        func canLoad(_ url: String) -> Bool { url.hasPrefix("box:") }

        func load(_ request: LoaderRequest, into body: any LoaderBody) async throws -> LoaderResponse {
            asked.withLock { $0.append(request) }
            if let failure { throw failure }
            let answer = answer(request)
            if answer == .notModified { return answer }
            guard let bytes = pictures[request.url] else { throw Failure(.http(404), "The box is empty.") }
            try body.expect(Int64(bytes.count))
            for start in stride(from: 0, to: bytes.count, by: 1_000) {
                try await Task.sleep(for: pause)
                try await body.write(Array(bytes[start..<min(bytes.count, start + 1_000)]))
            }
            return answer
        }
    }

    private struct Odd: Error, CustomStringConvertible { let description = "It is odd." }

    @Test func `URLs of a loader's scheme are fetched, checked and cached like others`() async throws {
        let box = Box(["box:a": Pictures.jpeg, "box:text": Array("no picture at all".utf8)])
        try await withWorkplace(configure: { $0.loaders = [box] }) { (place) async throws in
            let job = try await place.enqueue(["box:a", "box:text", "box:none"], variants: "v=20x,webp")
            try await place.drain()
            let rows = try await place.store.reports.results(job: job, after: 0, limit: 10)
            #expect(rows.filter { $0.url == "box:a" }.compactMap(\.variant).sorted() == ["original", "v"])
            #expect(rows.filter { $0.url == "box:a" }.allSatisfy { $0.bytesFrom == .loader })
            #expect(rows.first { $0.url == "box:text" }?.failure == "not-an-image")
            #expect(rows.first { $0.url == "box:none" }?.failure == "http-404")
            let again = try await place.enqueue(["box:a"], variants: "v=20x,webp")
            try await place.drain()
            #expect(try await place.progress(again).cached == 1)
            #expect(box.asked.withLock { $0.count { $0.url == "box:a" } } == 1)
        }
    }

    @Test(arguments: [
        ("total-timeout=1s", "took longer than 1000 ms (--total-timeout)"),
        ("timeout=300ms", "wrote nothing for 300 ms (--silence-timeout)"),
    ])
    func `The job's timeouts hold for a loader, too`(_ options: String, _ message: String) async throws {
        let box = Box(["box:a": Pictures.jpeg], pause: .seconds(60))
        try await withWorkplace(configure: {
            $0.loaders = [box]
            $0.retries.maxTries = 1
        }) { (place) async throws in
            let job = try await place.enqueue(["box:a"], options: options)
            try await place.drain()
            let row = try await place.store.reports.results(job: job, after: 0, limit: 10).first
            #expect(row?.failure == "timeout")
            #expect(row?.message?.contains(message) == true, "\(row?.message ?? "")")
        }
    }

    @Test func `A body larger than the cache's limit is too large, and no full disk`() async throws {
        let box = Box(["box:a": Pictures.jpeg + [UInt8](repeating: 0, count: 200_000)])
        try await withWorkplace(configure: {
            $0.loaders = [box]
            $0.cachePolicy.maxBytes = 100_000
        }) { (place) async throws in
            let job = try await place.enqueue(["box:a"])
            try await place.drain()
            let row = try await place.store.reports.results(job: job, after: 0, limit: 10).first
            #expect(row?.failure == "too-large", "\(String(describing: row?.message))")
        }
    }

    @Test func `The last registered loader is asked first`() async throws {
        let first = Box(["box:a": Pictures.png])
        let last = Box(["box:a": Pictures.jpeg])
        try await withWorkplace(configure: { $0.loaders = [first, last] }) { (place) async throws in
            _ = try await place.enqueue(["box:a"])
            try await place.drain()
            #expect(first.asked.withLock { $0.isEmpty } && last.asked.withLock { $0.count } == 1)
        }
    }

    @Test func `A loader's body is limited in bytes and pixels while it arrives`() async throws {
        let box = Box(["box:large": Pictures.jpeg, "box:wide": TestImages.pngHeaderOnly(50_000, 50_000)])
        try await withWorkplace(configure: {
            $0.loaders = [box]
            $0.downloads.maxBodyBytes = Int64(Pictures.jpeg.count - 1)
        }) { (place) async throws in
            let job = try await place.enqueue(["box:large", "box:wide"])
            try await place.drain()
            let rows = try await place.store.reports.results(job: job, after: 0, limit: 10)
            #expect(rows.map(\.failure) == ["too-large", "too-many-pixels"])
        }
    }

    @Test func `A loader's error fails its item with class delegate, and no other item`() async throws {
        let box = Box(["box:a": Pictures.jpeg], failure: Odd())
        let origin = try LoopbackOrigin { _ in .ok(Pictures.png) }
        try await withWorkplace(configure: { $0.loaders = [box] }) { (place) async throws in
            let job = try await place.enqueue(["box:a", origin.url("/b.png")])
            try await place.drain()
            let rows = try await place.store.reports.results(job: job, after: 0, limit: 10)
            #expect(rows[0].failure == "delegate" && rows[0].message == "The loader failed: It is odd.")
            #expect(try await place.progress(job).done == 1)
        }
    }

    @Test func `An unchanged source is revalidated by the loader without bytes`() async throws {
        let box = Box(["box:a": Pictures.jpeg]) { request in
            request.etag == "1" ? .notModified : LoaderResponse(etag: "1")
        }
        try await withWorkplace(configure: { $0.loaders = [box] }) { (place) async throws in
            for _ in 0..<2 {
                _ = try await place.enqueue(["box:a"], options: "refresh-cached")
                try await place.drain()
            }
            #expect(box.asked.withLock { $0.map(\.etag) } == [nil, "1"])
            #expect(try await place.progress(2).cached == 1)
        }
    }

    /// Serves what would be an ordinary host, one byte in ten milliseconds, until it is cancelled.
    private final class Slow: ImageLoader {
        let host: String
        let cancelled = Mutex(0)
        let began = Mutex(0)

        init(host: String) { self.host = host }

        func canLoad(_ url: String) -> Bool { url.hasPrefix("http://\(host)/") }

        func load(_ request: LoaderRequest, into body: any LoaderBody) async throws -> LoaderResponse {
            guard request.url.hasSuffix("/slow") else {
                try await body.write(Pictures.jpeg)
                return LoaderResponse(contentType: "image/jpeg")
            }
            began.withLock { $0 += 1 }
            do {
                try body.expect(Int64(Pictures.jpeg.count))
                for byte in Pictures.jpeg {
                    try await body.write([byte])
                    try await Task.sleep(for: .milliseconds(10))
                }
            } catch {
                cancelled.withLock { $0 += 1 }
                throw error
            }
            return LoaderResponse()
        }
    }

    @Test func `A loader serves a host without a request, and is cancelled with the job`() async throws {
        let slow = Slow(host: "pictures.invalid")
        let stages = Shared<Set<TransferReport.Stage>>([])
        try await withWorkplace(configure: {
            $0.loaders = [slow]
            $0.downloads.progressInterval = .milliseconds(100)
            $0.onTransfer = { report in
                if report.origin == .loader, report.received > 0 { stages.withLock { _ = $0.insert(report.stage) } }
            }
        }) { (place) async throws in
            let job = try await place.enqueue(["http://pictures.invalid/slow"])
            let other = try await place.enqueue(["http://pictures.invalid/quick"])
            async let run = place.drain()
            let isRunning = try await eventually {
                let isOtherDone = try await place.progress(other).done == 1
                return isOtherDone && slow.began.withLock { $0 } == 1
            }
            #expect(isRunning)
            let isTold = await eventually { stages.withLock { $0.contains(.continued) } }
            #expect(isTold)
            try await place.store.control.cancel(job: job)
            let isCancelled = await eventually { slow.cancelled.withLock { $0 } == 1 }
            #expect(isCancelled)
            _ = try await run
            #expect(try await place.progress(job).cancelled == 1)
        }
    }

    @Test func `A loader that takes longer than the total timeout is cancelled`() async throws {
        let box = Box(["box:a": Pictures.jpeg], pause: .seconds(60))
        try await withWorkplace(configure: {
            $0.loaders = [box]
            $0.downloads.totalTimeout = .milliseconds(200)
            $0.retries.maxTries = 1
        }) { (place) async throws in
            let job = try await place.enqueue(["box:a"])
            try await place.drain()
            let rows = try await place.store.reports.results(job: job, after: 0, limit: 10)
            #expect(rows.map(\.failure) == ["timeout"])
        }
    }
}
