import Core
import Download
import ImageFiles
import Imaging
import Jobs
import PrefetchWorker
import Synchronization
import TestSupport
import Testing

/// A refusal by the worker's settings is no fault of the URL, and a whole body isn't fetched again.
@Suite("Refused by our own settings", .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct OwnRefusalTests {
    @Test func `A URL whose body was too large is requested again once the limit has changed`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace(configure: { $0.downloads.maxBodyBytes = 100 }) { (place) async throws in
            for (limit, requests, failed) in [(Int64(100), 1, 1), (100, 1, 1), (1 << 20, 2, 0)] {
                let job = try await place.enqueue([origin.url("/a.jpg")])
                _ = try await place.with { $0.downloads.maxBodyBytes = limit }.drain()
                let progress = try await place.progress(job)
                #expect(progress.failed + progress.blacklisted == failed, "\(limit)")
                #expect(origin.requests.count == requests)
            }
            #expect(try await place.store.hosts.statuses().allSatisfy(\.failures.isEmpty))
        }
    }

    @Test func `A URL with too many redirects is requested again once more redirects are allowed`() async throws {
        let origin = try LoopbackOrigin { request in
            guard let number = Int(request.path.dropFirst()), number > 0 else { return .ok(Pictures.jpeg) }
            return .redirect(to: "/\(number - 1)")
        }
        try await withWorkplace(configure: { $0.downloads.maxRedirects = 1 }) { (place) async throws in
            for (limit, requests, failed) in [(1, 2, 1), (1, 2, 1), (2, 5, 0)] {
                let job = try await place.enqueue([origin.url("/2")])
                _ = try await place.with { $0.downloads.maxRedirects = limit }.drain()
                let progress = try await place.progress(job)
                #expect(progress.failed + progress.blacklisted == failed, "\(limit)")
                #expect(origin.requests.count == requests)
                let item = try await place.history(origin.url("/2"))
                if failed > 0 { #expect(item.message?.contains("--max-redirects") == true) }
            }
            #expect(try await place.store.hosts.statuses().allSatisfy(\.failures.isEmpty))
        }
    }

    @Test func `A forbidden address is connected to once it is allowed`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace(configure: { $0.downloads.addresses = .publicOnly }) { (place) async throws in
            let url = origin.url("/a.jpg")
            _ = try await place.enqueue([url])
            _ = try await place.drain()
            let refused = try await place.history(url)
            #expect(refused.failure == "forbidden-address")
            #expect(refused.message?.contains("--allow-addresses") == true)
            #expect(try await place.store.hosts.statuses().allSatisfy(\.failures.isEmpty))
            let job = try await place.enqueue([url])
            let allowed = try AddressPolicy(allowing: ["loopback"])
            _ = try await place.with { $0.downloads.addresses = allowed }.drain()
            #expect(try await place.progress(job).done == 1)
        }
    }

    @Test func `Failures by too many pixels or bytes name the flags that allow them`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace(configure: { $0.images.pixels = 10 }) { (place) async throws in
            _ = try await place.enqueue([origin.url("/a.jpg")])
            _ = try await place.drain()
            let item = try await place.history(origin.url("/a.jpg"))
            #expect(item.failure == "too-many-pixels")
            #expect(item.message?.contains("--max-pixels") == true)
            #expect(try await place.store.hosts.statuses().allSatisfy(\.failures.isEmpty))
            let job = try await place.enqueue([origin.url("/a.jpg")])
            _ = try await place.with { $0.images.pixels = 1_000_000 }.drain()
            #expect(try await place.progress(job).done == 1)
        }
    }

    static let whole: [([(name: String, value: String)], Bool, Int)] = [
        ([], false, 1), ([("ETag", "\"1\"")], false, 1), ([("ETag", "\"1\"")], true, 2), ([], true, 2),
    ]

    /// The length was announced and met: another request would bring the same. A body that ends with its connection may have
    /// broken off, so it is requested once more; it is whole if as many bytes come again.
    @Test(arguments: whole.indices)
    func `A whole body whose picture is truncated isn't fetched again`(_ index: Int) async throws {
        let (headers, isOpenEnded, requests) = Self.whole[index]
        let cut = Array(Pictures.png.dropLast(Pictures.png.count / 3))
        let origin = try LoopbackOrigin { _ in
            let lines = headers.map { "\($0.name): \($0.value)\r\n" }.joined()
            return isOpenEnded ? .raw("HTTP/1.1 200 OK\r\n\(lines)\r\n", body: cut) : .ok(cut, headers: headers)
        }
        try await withWorkplace(configure: { $0.retries.base = 1 }) { (place) async throws in
            _ = try await place.enqueue([origin.url("/a.png")])
            _ = try await place.drain()
            let item = try await place.history(origin.url("/a.png"))
            #expect(item.failure == "truncated")
            #expect(origin.requests.count == requests)
            #expect(try await place.store.blacklist.entries().map(\.failure) == [.truncated])
        }
    }

    /// The response has neither a length nor a tag.
    @Test(arguments: [true, false])
    func `A truncated body without a length is whole after one more request`(isChunked: Bool) async throws {
        let cut = Array(Pictures.png.dropLast(Pictures.png.count / 3))
        let count = Mutex(0)
        let origin = try LoopbackOrigin { _ in
            let isFirst = count.withLock { count in
                count += 1
                return count == 1
            }
            let body = isFirst ? cut : Pictures.png
            guard isChunked else { return .raw("HTTP/1.1 200 OK\r\n\r\n", body: body) }
            let chunk = Array("\(String(body.count, radix: 16))\r\n".utf8) + body + Array("\r\n0\r\n\r\n".utf8)
            return .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", body: chunk, closes: false)
        }
        try await withWorkplace { (place) async throws in
            let job = try await place.enqueue([origin.url("/a.png")], variants: "v=8x8,png")
            _ = try await place.drain()
            #expect(try await place.progress(job).done == 1)
            // From the start: nothing that came before is kept as a beginning.
            #expect(origin.requests.map { $0.header("Range") } == [nil, nil])
            #expect(try await place.store.blacklist.entries().isEmpty)
        }
    }

    /// What is kept of the first body, whether the item has a size, and the job's options.
    static let early: [(kept: Int, hasSize: Bool, options: String?)] = [
        (0, false, nil), (Pictures.png.count / 2, true, nil),
        (Pictures.png.count / 2, false, "min-bytes=\(Pictures.png.count)"),
    ]

    @Test(arguments: early.indices)
    func `A body without a length that ends early is tried again, whatever the job asks of it`(_ index: Int)
        async throws
    {
        let (kept, hasSize, options) = Self.early[index]
        let isFirst = Mutex(true)
        let origin = try LoopbackOrigin { _ in
            let isFirst = isFirst.withLock { first in
                defer { first = false }
                return first
            }
            return .raw("HTTP/1.1 200 OK\r\n\r\n", body: isFirst ? Array(Pictures.png.prefix(kept)) : Pictures.png)
        }
        try await withWorkplace(configure: { $0.retries.base = 1 }) { (place) async throws in
            var item = NewItem(url: origin.url("/a.png"))
            item.size = hasSize ? Int64(Pictures.png.count) : nil
            var job = NewJob(urls: [], options: options)
            job.items = [item]
            let id = try #require(try await place.store.queue.enqueue(job))
            _ = try await place.drain()
            #expect(try await place.progress(id).done == 1)
            #expect(origin.requests.count == 2)
            #expect(try await place.store.blacklist.entries().isEmpty)
        }
    }

    @Test func `Two announced lengths whose sum overflows fail their two items only`() async throws {
        let origin = try LoopbackOrigin { request in
            guard request.path.hasPrefix("/bad") else { return .ok(Pictures.jpeg) }
            return .raw("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n", closes: false)
        }
        try await withWorkplace { (place) async throws in
            let job = try await place.enqueue(
                (0..<4).map { origin.url("/bad\($0)") } + (0..<20).map { origin.url("/\($0)") })
            let summary = try await place.drain()
            let progress = try await place.progress(job)
            #expect((progress.failed, progress.done + progress.cached) == (4, 20))
            #expect(summary.bytesSaved > 0)
        }
    }
}
