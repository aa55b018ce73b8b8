import Synchronization
import TestSupport
import Testing

/// Jobs that revalidate cached pictures as often as these change.
@Suite(.timeLimit(.minutes(15))) struct RecheckTests {
    /// Lets a time pass, in hours, and fetches the URL by a job with the option.
    private func check(_ w: TestWorker, after hours: Double) async throws {
        try await w.sql("UPDATE sources SET fetched_at = fetched_at - \(Int64(hours * 3_600_000))")
        try await w.enqueue(w.url("/1.png"), "--option", "recheck=1h..4h")
        try await w.drain()
    }

    private func interval(_ w: TestWorker) async throws -> String {
        try await w.value("SELECT recheck_after / 60000 FROM sources")
    }

    @Test func `A picture is revalidated as often as it changes`() async throws {
        let version = Mutex(1)
        try await withWorker({ request in
            let number = version.withLock { $0 }
            let tag = "\"\(number)\""
            return request.header("If-None-Match") == tag
                ? .status(304) : .ok(Pictures.png(number), type: "image/png", headers: [("ETag", tag)])
        }) { w in
            try await w.enqueue(w.url("/1.png"))
            try await w.drain()
            // Before the shortest interval has passed, the cache serves it.
            try await check(w, after: 0.5)
            #expect(w.origin.requests.count == 1)
            // Unchanged: 1 h becomes 84 minutes, then 117, then 164.
            for (count, minutes) in [(2, "84"), (3, "117"), (4, "164")] {
                try await check(w, after: 2.7)
                #expect(w.origin.requests.count == count)
                #expect(try await interval(w) == minutes)
            }
            try await check(w, after: 2.5)
            #expect(w.origin.requests.count == 4)
            // Changed: 164 minutes become 131.
            version.withLock { $0 += 1 }
            try await check(w, after: 0.5)
            #expect(w.origin.requests.count == 5)
            #expect(try await interval(w) == "131")
            // A job without the option leaves it as it is.
            try await w.enqueue(w.url("/1.png"), "--option", "refresh-cached")
            try await w.drain()
            #expect(w.origin.requests.count == 6)
            #expect(try await interval(w) == "131")
        }
    }
}
