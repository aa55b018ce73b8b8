import Core
import Jobs
import Testing

@Suite("The blacklist", .timeLimit(.minutes(15)))
struct BlacklistTests {
    private func item(_ queue: Queue, _ url: String = "https://a.example/a.jpg") async throws -> ClaimedItem {
        _ = try await queue.store.queue.enqueue(NewJob(urls: [url]))
        return try #require(try await queue.claim().first)
    }

    private func fail(_ queue: Queue, _ url: String, _ failure: FailureClass) async throws {
        try await queue.end(try await item(queue, url), .failed(failure))
    }

    @Test func `A URL that failed for good is blacklisted with the reason, and its next claim has the entry`()
        async throws
    {
        try await withQueue { queue in
            try await fail(queue, "https://A.example:8443/a.jpg?x=1#y", .http(404))
            let next = try await item(queue, "https://A.example:8443/a.jpg?x=1")
            let entry = try #require(next.blacklisting)
            #expect(entry.url == "https://A.example:8443/a.jpg?x=1")
            #expect(entry.host == "a.example")
            #expect(
                (entry.failure, entry.httpStatus, entry.message, entry.count) == (.http(404), 404, "It went wrong.", 1))
            #expect(try await queue.store.blacklist.entries() == [entry])
            #expect(
                try queue.shell.expect("SELECT url, host, class, count FROM blacklist;") == [
                    "https://A.example:8443/a.jpg?x=1|a.example|http-404|1"
                ])
        }
    }

    @Test func `An item that ends because its URL is blacklisted has the entry's class and used no try`() async throws {
        try await withQueue { queue in
            try await fail(queue, "https://a.example/a.jpg", .badImage)
            let second = try await item(queue)
            try await queue.end(second, .blacklisted(try #require(second.blacklisting)))
            let progress = try await queue.progress(second.job)
            #expect((progress.blacklisted, progress.failed, progress.state) == (1, 0, .finished))
            let record = try #require(try await queue.store.reports.history(ofURL: second.url).first)
            #expect(
                (record.failure, record.message, record.attempts) == (
                    "bad-image", "On the blacklist: It went wrong.", 0
                ))
            #expect(try await queue.store.blacklist.entries().map(\.count) == [1])
        }
    }

    @Test func `An entry expires`() async throws {
        try await withQueue { queue in
            try await fail(queue, "https://a.example/a.jpg", .http(404))
            queue.clock.advance(86_400_000 - 1)
            #expect(try await queue.store.blacklist.entries().count == 1)
            queue.clock.advance(1)
            #expect(try await queue.store.blacklist.entries() == [])
            #expect(try await item(queue).blacklisting == nil)
        }
    }

    @Test func `Another failure raises the entry's count and renews its expiry`() async throws {
        try await withQueue { queue in
            try await fail(queue, "https://a.example/a.jpg", .http(404))
            let first = queue.clock.milliseconds
            queue.clock.advance(1_000)
            try await fail(queue, "https://a.example/a.jpg", .badImage)
            let entry = try #require(try await queue.store.blacklist.entries().first)
            #expect((entry.count, entry.failure, entry.httpStatus) == (2, .badImage, nil))
            #expect((entry.firstAt, entry.lastAt) == (first, first + 1_000))
            #expect(entry.expiresAt.milliseconds == queue.clock.milliseconds + 7 * 86_400_000)
        }
    }

    @Test func `A download removes the URL's entry, and a cache hit does not`() async throws {
        try await withQueue { queue in
            try await fail(queue, "https://a.example/a.jpg", .http(404))
            let cached = try await item(queue)
            try await queue.end(cached, cached.completion(cached: true, clock: queue.clock))
            #expect(try await queue.store.blacklist.entries().count == 1)
            let fetched = try await item(queue)
            try await queue.end(fetched, fetched.completion(clock: queue.clock))
            #expect(try await queue.store.blacklist.entries() == [])
        }
    }

    @Test func `A revalidation removes the URL's entry, too`() async throws {
        try await withQueue { queue in
            let first = try await item(queue)
            try await queue.end(first, first.completion(clock: queue.clock))
            try await fail(queue, "https://a.example/a.jpg", .http(404))
            let again = try await item(queue)
            var source = try #require(again.source)
            for (seconds, count) in [(0, 1), (1, 0)] as [(Int64, Int)] {
                source.fetchedAt = source.fetchedAt + seconds * 1_000
                let item = seconds == 0 ? again : try await self.item(queue)
                try await queue.end(
                    item, .done(Completion(source: source, renditions: [], newVariants: [], origin: .disk)))
                #expect(try await queue.store.blacklist.entries().count == count)
            }
        }
    }

    @Test func `An entry whose key is no URL has the host of the requested URL`() async throws {
        try await withQueue { queue in
            _ = try await queue.store.queue.enqueue(NewJob(urls: ["https://a.example/a.jpg?1"]))
            let claimed = try #require(try await queue.claim().first)
            let item = try await queue.store.cache.look(up: claimed, by: "picture a")
            try await queue.end(item, .failed(Failure(.http(404), "m")))
            #expect(try await queue.store.blacklist.entries(.host("a.example")).map(\.url) == ["picture a"])
        }
    }

    static let selections: [(Blacklist.Selection, left: [String])] = [
        (.url("https://a.example/1#x"), ["https://a.example/2", "https://b.example/1"]),
        (.host("A.example"), ["https://b.example/1"]),
        (.host("xn--b", or: "A.example"), ["https://b.example/1"]),
        (.failure(.badImage), ["https://a.example/1"]),
        (.all, []),
        (.url("https://a.example/none"), ["https://a.example/1", "https://a.example/2", "https://b.example/1"]),
    ]

    @Test(arguments: selections.indices)
    func `Entries are removed by URL, host or class`(_ index: Int) async throws {
        let (selection, left) = Self.selections[index]
        try await withQueue { queue in
            try await fail(queue, "https://a.example/1", .http(404))
            try await fail(queue, "https://a.example/2", .badImage)
            try await fail(queue, "https://b.example/1", .badImage)
            #expect(try await queue.store.blacklist.entries(selection).count == 3 - left.count)
            #expect(try await queue.store.blacklist.remove(selection) == 3 - left.count)
            #expect(try await queue.store.blacklist.entries().map(\.url).sorted() == left)
        }
    }

    @Test(.enabled(if: Shell.isThere, Shell.missing))
    func `A shell removes entries through the view`() async throws {
        try await withQueue { queue in
            try await fail(queue, "https://a.example/1", .http(404))
            try await fail(queue, "https://b.example/1", .http(404))
            try queue.shell.expect("DELETE FROM blacklist WHERE host = 'a.example';")
            #expect(try await queue.store.blacklist.entries().map(\.host) == ["b.example"])
        }
    }

    @Test func `A blocked host stays blocked until the latest of its times`() async throws {
        try await withQueue { queue in
            let now = queue.clock.now
            let busy = Failure(.http(429), "m")
            for wait in [5_000, 9_000, 1_000] as [Int64] {
                let item = try await item(queue, "https://User:pw@A.example:1/\(wait)")
                try await queue.end(item, .retry(at: now + wait, busy, blockingHost: true))
            }
            let other = try await item(queue, "https://b.example/")
            try await queue.end(other, .retry(at: now + 9_000, busy, blockingHost: false))
            #expect(try await queue.store.hosts.blocked() == ["a.example": now + 9_000])
            queue.clock.advance(9_000)
            #expect(try await queue.store.hosts.blocked() == [:])
        }
    }
}
