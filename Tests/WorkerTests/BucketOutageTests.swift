import Glibc
import TestSupport
import Testing

/// A worker whose bucket can't be reached, or says nothing.
@Suite(
    "A bucket that fails", .enabled(if: S3Server.isAvailable, Comment(rawValue: S3Server.missing)),
    .timeLimit(.minutes(15)))
struct BucketOutageTests {
    /// Lends a worker that reaches its bucket through a relay. Afterwards it reaches the bucket directly, for the checks.
    private func withBucketBehindRelay(_ body: (TestWorker, Relay) async throws -> Void) async throws {
        try await withBucket { w, bucket in
            let relay = try Relay(to: try #require(UInt16(bucket.endpoint.split(separator: ":").last ?? "")))
            defer { relay.stop() }
            w.set(["AWS_ENDPOINT_URL": "http://127.0.0.1:\(relay.port)"])
            try await body(w, relay)
            w.set(["AWS_ENDPOINT_URL": bucket.endpoint])
        }
    }

    @Test func `An unreachable bucket pauses the worker, which reports the pause once and goes on by itself`()
        async throws
    {
        try await withBucketBehindRelay { w, relay in
            let worker = try await w.startRegistered("--max-tries", "1")
            try await w.enqueue((0..<40).map { w.url("/\($0).png") })
            try await w.eventually("some are done") {
                try await w.value("SELECT count(*) >= 40 FROM items WHERE state = 'done'") == "1"
            }
            relay.cut()
            let job = try await w.enqueue((40..<60).map { w.url("/\($0).png") })
            try await w.eventually("the worker says it", within: .seconds(60)) {
                try w.errors(of: worker).contains("s3://")
            }
            try await Task.sleep(for: .seconds(3))
            #expect(try await w.value("SELECT count(*) FROM items WHERE state = 'failed'") == "0")
            relay.mend()
            try await w.untilEnded(job, within: .seconds(90))
            #expect(try await w.value("SELECT count(*) FROM items WHERE state = 'done'") == "60")
            // The worker kept what it had fetched.
            #expect(w.origin.requests.count == 60)
            let told = try w.errors(of: worker)
            #expect(
                told.split(separator: "\n").count { $0.contains("The worker pauses") } == 1,
                "\(told)")
            worker.send(SIGTERM)
            #expect(try await worker.wait() == .code(0))
        }
    }

    @Test func `A worker ends after its grace period although the bucket is silent`() async throws {
        try await withBucketBehindRelay { w, relay in
            let worker = try await w.startRegistered("--grace", "1s")
            try await w.enqueue(w.url("/0.png"))
            try await w.untilEnded("1")
            relay.hold()
            try await w.enqueue(w.url("/1.png"))
            try await w.eventually("it is fetched") { w.origin.requests.count == 2 }
            try await w.eventually("it is being sent") { relay.heldPieces > 0 }
            worker.send(SIGTERM)
            #expect(try await worker.wait(atMost: .seconds(12)) == .code(0))
            #expect(try await w.value("SELECT state FROM items WHERE id = 2") == "queued")
        }
    }
}
