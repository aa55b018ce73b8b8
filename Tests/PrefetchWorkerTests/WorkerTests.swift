import Download
import Jobs
import PrefetchWorker
import SystemPackage
import TestSupport
import Testing

@Suite("A worker's run", .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct WorkerTests {
    @Test func `Images are downloaded, scaled down, and stored`() async throws {
        let origin = try LoopbackOrigin(script: [
            "/a.jpg": [.ok(Pictures.jpeg, type: "image/jpeg")], "/b.png": [.ok(Pictures.png, type: "image/png")],
            "/c.webp": [.ok(Pictures.webp, type: "image/webp")],
        ])
        try await withWorkplace { place in
            let job = try await place.enqueue(
                ["/a.jpg", "/b.png", "/c.webp"].map { origin.url($0) }, variants: "small=8x8,webp tiny=4x,png")
            let summary = try await place.drain()
            #expect(summary.counts.done == 3)
            let bytes = Int64(Pictures.jpeg.count + Pictures.png.count + Pictures.webp.count)
            #expect(summary.counts.bytes == bytes)
            let progress = try await place.progress(job)
            #expect((progress.state, progress.done, progress.bytes) == (.finished, 3, bytes))
            let results = try await place.store.reports.results(job: job, after: 0, limit: 10)
            #expect(results.map(\.variant) == Array(repeating: ["original", "small", "tiny"], count: 3).flatMap { $0 })
            #expect(results.map(\.width) == Array(repeating: [16, 8, 4], count: 3).flatMap { $0 })
            #expect(results.map(\.format) == ["jpeg", "webp", "png", "png", "webp", "png", "webp", "webp", "png"])
        }
    }

    @Test func `The same URL in ten items is fetched once`() async throws {
        let origin = try LoopbackOrigin { _ in .delayed(milliseconds: 100, then: .ok(Pictures.jpeg)) }
        try await withWorkplace { place in
            let job = try await place.enqueue(Array(repeating: origin.url("/a.jpg"), count: 10), variants: "small=8x8")
            try await place.drain()
            #expect(origin.requests.count == 1)
            #expect(try await place.progress(job).ended == 10)
            #expect(try await place.progress(job).failed == 0)
        }
    }

    @Test func `The same picture under many URLs is stored once`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace { place in
            let job = try await place.enqueue((0..<5).map { origin.url("/\($0).jpg") }, variants: "small=8x8")
            try await place.drain()
            let blobs = try await place.store.reports.results(job: job, after: 0, limit: 10).map(\.blob)
            #expect((blobs.count, Set(blobs).count) == (10, 2))
        }
    }

    /// A placeholder picture is at thousands of URLs. Each of its items once waited until the item before it was
    /// written down, and kept others from their places meanwhile.
    @Test(arguments: ["", "small=8x8"])
    func `Items with the same picture don't wait for each other`(_ variants: String) async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace { place in
            let job = try await place.enqueue(
                (0..<60).map { origin.url("/\($0).jpg") }, variants: variants.isEmpty ? nil : variants)
            try await place.drain()
            let rows = try await place.store.reports.results(job: job, after: 0, limit: 200)
            #expect(
                rows.count == (variants.isEmpty ? 60 : 120) && rows.allSatisfy { $0.failure == nil && $0.width != nil })
            // A group ends at one time. They are more than items only where each waits for the last.
            var groups: Set<Int64> = []
            for number in 0..<60 {
                groups.insert(try #require(try await place.history(origin.url("/\(number).jpg")).finishedAt))
            }
            #expect(groups.count <= 50)
        }
    }

    @Test func `A second run makes no request`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace { place in
            _ = try await place.enqueue([origin.url("/a.jpg")], variants: "small=8x8")
            try await place.drain()
            let second = try await place.enqueue([origin.url("/a.jpg#fragment")], variants: "small=8x8")
            let third = try await place.enqueue([origin.url("/a.jpg")], variants: "another=4x4")
            let summary = try await place.drain()
            #expect((summary.counts.cached, summary.counts.done) == (2, 0))
            #expect(origin.requests.count == 1)
            #expect(try await place.progress(second).cached == 1)
            #expect(try await place.item(third).variant == "another")
        }
    }

    @Test func `refresh-cached sends a conditional request, and a 304 makes no variant again`() async throws {
        let origin = try LoopbackOrigin { request in
            request.header("If-None-Match") == "\"v1\""
                ? .status(304) : .ok(Pictures.jpeg, headers: [("ETag", "\"v1\"")])
        }
        try await withWorkplace { place in
            let first = try await place.enqueue([origin.url("/a.jpg")], variants: "small=8x8")
            try await place.drain()
            let second = try await place.enqueue(
                [origin.url("/a.jpg")], variants: "small=8x8", options: "refresh-cached")
            // Nothing may be transformed: a helper would end at once, and only its libraries' versions are asked for.
            let script = #"[ "$1" = --describe ] && exec "$0" "$1""#
            let summary = try await place.with {
                ($0.helpers.executable, $0.helpers.arguments) = (
                    "/bin/sh", ["-c", script, Workplace.executable.string]
                )
            }.drain()
            #expect(summary.counts.cached == 1)
            #expect(origin.requests.count == 2)
            #expect(try await place.item(second).blob == place.item(first).blob)
        }
    }

    @Test func `refresh-cached stores a changed source`() async throws {
        let origin = try LoopbackOrigin(script: ["/a": [.ok(Pictures.jpeg), .ok(Pictures.png)]])
        try await withWorkplace { place in
            let first = try await place.enqueue([origin.url("/a")])
            try await place.drain()
            let second = try await place.enqueue([origin.url("/a")], options: "refresh-cached")
            try await place.drain()
            #expect(try await place.item(first).format == "jpeg")
            #expect(try await place.item(second).format == "png")
        }
    }

    @Test func `from-cache-only makes no request, and fails with not-cached`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace { place in
            let job = try await place.enqueue([origin.url("/a.jpg")], options: "from-cache-only")
            try await place.drain()
            #expect(try await place.item(job).failure == "not-cached")
            #expect(origin.requests.isEmpty)
            #expect(try await place.store.blacklist.entries() == [])
        }
    }

    @Test func `A blacklisted URL isn't requested, unless the job has retry-failed`() async throws {
        let origin = try LoopbackOrigin(script: ["/a.jpg": [.status(404), .ok(Pictures.jpeg)]])
        try await withWorkplace { place in
            let first = try await place.enqueue([origin.url("/a.jpg")])
            try await place.drain()
            #expect(try await place.item(first).failure == "http-404")
            let second = try await place.enqueue([origin.url("/a.jpg")])
            #expect(try await place.drain().counts.blacklisted == 1)
            #expect(try await place.progress(second).blacklisted == 1)
            #expect(origin.requests.count == 1)
            let third = try await place.enqueue([origin.url("/a.jpg")], options: "retry-failed")
            try await place.drain()
            #expect(try await place.progress(third).done == 1)
            #expect(origin.requests.count == 2)
            #expect(try await place.store.blacklist.entries() == [])
        }
    }

    @Test func `A 429 with Retry-After delays all requests to the host`() async throws {
        let busy = LoopbackReply.status(429, headers: [("Retry-After", "1")])
        let origin = try LoopbackOrigin(script: ["/a": [busy, .ok(Pictures.jpeg)], "/b": [.ok(Pictures.png)]])
        try await withWorkplace(configure: { $0.downloads.perHost = 1 }) { place in
            let start = ContinuousClock.now
            let job = try await place.enqueue([origin.url("/a"), origin.url("/b")])
            try await place.drain()
            #expect(ContinuousClock.now - start > .seconds(1))
            #expect(try await place.progress(job).done == 2)
            #expect(origin.requests.first?.path == "/a")
            #expect(try await place.history(origin.url("/a")).attempts == 2)
            #expect(try await place.history(origin.url("/b")).attempts == 1)
        }
    }

    @Test func `A temporary failure is tried four times in all`() async throws {
        let origin = try LoopbackOrigin { _ in .status(503) }
        try await withWorkplace { place in
            let job = try await place.enqueue([origin.url("/a.jpg")])
            let summary = try await place.drain()
            #expect((summary.counts.retried, summary.counts.failed) == (3, 1))
            #expect(origin.requests.count == 4)
            #expect(try await place.item(job).failure == "http-503")
            #expect(try await place.history(origin.url("/a.jpg")).attempts == 4)
        }
    }

    static let wrong: [(reply: LoopbackReply, failure: String)] = [
        (.ok(Array("<html>not here</html>".utf8)), "not-an-image"), (.ok([]), "bad-image"),
        (.ok(Array(Pictures.jpeg.prefix(40)) + [UInt8](repeating: 0, count: 400)), "truncated"),
        (.closeEarly(afterBytes: 0, of: 100), "connection-lost"), (.noReply, "connection-lost"),
    ]

    @Test(arguments: wrong.indices)
    func `A body that isn't a whole image fails with its class`(_ index: Int) async throws {
        let (reply, failure) = Self.wrong[index]
        let origin = try LoopbackOrigin { _ in reply }
        try await withWorkplace { place in
            let job = try await place.enqueue([origin.url("/a.jpg")], variants: "small=8x8")
            try await place.drain()
            let item = try await place.item(job)
            #expect(item.failure == failure, "\(item.message ?? "no message")")
        }
    }

    @Test func `A forbidden address and an invalid URL fail without a request`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace(configure: { $0.downloads.addresses = .publicOnly }) { place in
            let job = try await place.enqueue([origin.url("/a.jpg"), "not a url"])
            try await place.drain()
            let results = try await place.store.reports.results(job: job, after: 0, limit: 10)
            #expect(results.map(\.failure) == ["forbidden-address", "invalid-url"])
            #expect(origin.requests.isEmpty)
        }
    }

    @Test func `A job with invalid variants fails whole, and the others go on`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace { place in
            let wrong = try await place.enqueue(
                [origin.url("/a.jpg"), origin.url("/b.jpg")], variants: "thumb=widexhigh")
            let right = try await place.enqueue([origin.url("/c.jpg")])
            try await place.drain()
            let progress = try await place.progress(wrong)
            #expect((progress.state, progress.cancelled) == (.failed, 2))
            #expect(progress.error?.contains("widexhigh") == true)
            #expect(try await place.progress(right).done == 1)
            #expect(origin.requests.map(\.path) == ["/c.jpg"])
        }
    }
}
