import TestSupport
import Testing

/// A list of URLs that all answer with 404.
@Suite("Ten thousand URLs that are not there", .timeLimit(.minutes(15)))
struct NotFoundTests {
    @Test func `Ten thousand 404s take little memory, and stay blacklisted until expiry or retry-failed`()
        async throws
    {
        try await withWorker({ _ in .status(404) }) { worker in
            let count = 10_000
            let file = try worker.file("urls", (0..<count).map { worker.origin.url("/\($0)") }.joined(separator: "\n"))
            let job = try await worker.enqueue("-f", file)
            let child = try worker.start("--drain", "--quiet")
            var peak = 0
            while child.exit == nil {
                peak = max(peak, child.peakMemory ?? 0)
                try await Task.sleep(for: .milliseconds(50))
            }
            #expect(child.exit == .code(2))
            #expect(peak < 150)
            #expect(try await worker.counts(job) == "0|0|\(count)|0|0")
            #expect(worker.origin.requests.count == count)
            #expect(try await worker.value("SELECT count(*) FROM blacklist WHERE class = 'http-404'") == "\(count)")

            let again = try await worker.enqueue("-f", file)
            try await worker.drain(expecting: 2)
            #expect(try await worker.counts(again) == "0|0|0|\(count)|0")
            #expect(worker.origin.requests.count == count)

            try await worker.enqueue([worker.origin.url("/1")], "--option", "retry-failed")
            try await worker.drain(expecting: 2)
            #expect(worker.origin.requests.count == count + 1)

            try await worker.sql(
                "UPDATE blacklist_entries SET expires_at = 1 WHERE url = '\(worker.origin.url("/2"))'")
            try await worker.enqueue([worker.origin.url("/2"), worker.origin.url("/3")])
            try await worker.drain(expecting: 2)
            #expect(worker.origin.requests.count == count + 2)
        }
    }
}
