import Glibc
import TestSupport
import Testing

/// Commands that control jobs, and their effect on a worker that has the jobs in flight.
@Suite(.serialized, .timeLimit(.minutes(15))) struct ControlTests {
    /// 20 pictures, one at a time, from an origin that has stopped at the third.
    private func withHeldJob(_ body: (TestWorker, RunningProgram, Gate) async throws -> Void) async throws {
        let gate = Gate()
        try await withWorker({ request in
            if request.path == "/2.png" { gate.wait() }
            return Pictures.reply(request)
        }) { w in
            try await w.enqueue((0..<20).map { w.url("/\($0).png") })
            let child = try w.start("--concurrency", "1")
            try await w.eventually("the third is in flight") { w.origin.requestCount("/2.png") == 1 }
            try await body(w, child, gate)
        }
    }

    @Test func aPausedJobIsNotClaimedAndAResumedJobGoesOn() async throws {
        try await withHeldJob { w, child, gate in
            let paused = try await w.run("pause", "1")
            #expect(paused.output.hasPrefix("job 1: paused, "))
            try await w.sql(
                "INSERT INTO items (job, url) VALUES (1, '\(w.url("/20.png"))'), (1, '\(w.url("/21.png"))')")
            gate.open()
            try await w.eventually("nothing is in flight") { try await w.value("SELECT active FROM jobs") == "0" }
            try await Task.sleep(for: .milliseconds(400))
            // The transfers that ran were finished; items that waited for one may have gone back to the queue.
            let done = Int(try await w.value("SELECT done FROM jobs WHERE state = 'paused'")) ?? 0
            #expect((3...20).contains(done))
            #expect(try await w.value("SELECT queued + done FROM jobs") == "22")
            // The worker may have claimed some before the state is read.
            let resumed = try await w.run("resume", "1").output
            #expect(resumed.hasPrefix("job 1: queued, ") || resumed.hasPrefix("job 1: running, "), "\(resumed)")
            try await w.untilEnded("1")
            #expect(try await w.counts("1") == "22|0|0|0|0")
        }
    }

    @Test func aCancelledJobsItemsInFlightEndToo() async throws {
        try await withHeldJob { w, child, gate in
            let cancelled = try await w.run("cancel", "1")
            #expect(cancelled.line == "job 1: cancelled, 20 of 20 ended")
            // The worker looks once a second for what it has lost.
            try await Task.sleep(for: .milliseconds(1_800))
            gate.open()
            try await Task.sleep(for: .milliseconds(400))
            // As those in flight are cancelled one by one, one that waited may take a freed place for a moment.
            #expect(w.origin.requests.count <= 6)
            #expect(child.exit == nil)
            let late = try await w.run("pause", "1", expecting: 64)
            #expect(late.errors.contains("Job 1 is already cancelled."))
            let again = try await w.run("retry", "1")
            #expect(again.errors.contains("items go back into the queue."))
            try await w.untilEnded("1")
            #expect(try await w.counts("1") == "20|0|0|0|0")
        }
    }

    @Test func oneItemIsCancelledAndTheOthersGoOn() async throws {
        try await withHeldJob { w, child, gate in
            let held = w.url("/2.png")
            let cancelled = try await w.run("cancel", "1", "--url", held, "--url", w.url("/19.png"))
            #expect(cancelled.errors == "2 items end as cancelled.\n")
            #expect(cancelled.line.hasPrefix("job 1: running, "))
            // Its place is free although the origin still says nothing.
            try await w.untilEnded("1")
            #expect(child.exit == nil)
            #expect(try await w.value("SELECT done, cancelled FROM jobs") == "18|2")
            #expect(w.origin.requestCount("/19.png") == 0)
            gate.open()
            #expect(try await w.run("cancel", "1", "--host", "127.0.0.1").errors == "0 items end as cancelled.\n")
        }
    }

    @Test func retryQueuesFailedItemsOnly() async throws {
        try await withWorker(script: ["/flaky": [.status(404), .ok(Pictures.png(1))]]) { w in
            try await w.enqueue(w.url("/flaky"), w.url("/2.png"))
            try await w.drain(expecting: 2)
            #expect(try await w.counts("1") == "1|0|1|0|0")
            // Still listed, so it ends without a request.
            try await w.run("retry", "1")
            try await w.drain(expecting: 2)
            #expect(try await w.counts("1") == "1|0|0|1|0")
            #expect(w.origin.requestCount("/flaky") == 1)
            #expect(try await w.run("blacklist", "remove", w.url("/flaky")).output == "1 removed\n")
            try await w.run("retry", "1")
            try await w.drain()
            #expect(try await w.counts("1") == "2|0|0|0|0")
        }
    }

    @Test func anUnknownJobIsRefused() async throws {
        try await withWorker { w in
            try await w.run("init")
            for command in ["pause", "resume", "cancel", "retry"] {
                let refused = try await w.run(command, "7", expecting: 64)
                #expect(refused.errors == "worker: There is no job 7. List the jobs with: worker status\n")
            }
        }
    }

    private struct Entry: Decodable {
        let url, host, failure: String
        let count: Int
    }

    @Test func theBlacklistIsListedAndItsEntriesAreRemoved() async throws {
        try await withWorker { w in
            try await w.run(["enqueue"] + ["a", "b", "c", "d"].map { w.url("/\($0)") })
            try await w.drain(expecting: 2)
            #expect(try await w.run("blacklist", "list").lines.count == 5)
            let entries = try await w.run("blacklist", "list", "--json", "--class", "http-404").json([Entry].self)
            #expect(entries.count == 4 && entries.allSatisfy { $0.failure == "http-404" && $0.host == "127.0.0.1" })
            #expect(try await w.run("blacklist", "list", "--class", "truncated").lines.count == 1)
            #expect(try await w.run("blacklist", "remove", w.url("/a")).output == "1 removed\n")
            #expect(try await w.run("blacklist", "remove", w.url("/a"), expecting: 1).output == "0 removed\n")
            try await w.sql("DELETE FROM blacklist WHERE url = '\(w.url("/b"))'")
            #expect(try await w.run("blacklist", "remove", "--host", "127.0.0.1").output == "2 removed\n")
            #expect(try await w.run("blacklist", "clear", "--yes").output == "0 removed\n")
            try await w.run("blacklist", "remove", expecting: 64)
            let odd = try await w.run("blacklist", "list", "--class", "sad", expecting: 64)
            #expect(odd.errors.contains("Unknown class 'sad'. The classes are: dns, connect,"))
        }
    }

    @Test func aBlacklistedURLIsRequestedOnlyForAJobWithRetryFailed() async throws {
        try await withWorker(script: ["/late": [.status(404), .ok(Pictures.png(1))]]) { w in
            let url = w.url("/late")
            try await w.enqueue(url)
            try await w.drain(expecting: 2)
            try await w.enqueue(url)
            try await w.drain(expecting: 2)
            #expect(try await w.counts("2") == "0|0|0|1|0")
            #expect(w.origin.requests.count == 1)
            try await w.enqueue(url, "--option", "retry-failed")
            try await w.drain()
            #expect(try await w.counts("3") == "1|0|0|0|0")
            #expect(try await w.value("SELECT count(*) FROM blacklist") == "0")
        }
    }

    @Test func aURLWithAnExpiredEntryIsRequestedAgain() async throws {
        try await withWorker(script: ["/late": [.status(404), .ok(Pictures.png(1))]]) { w in
            try await w.enqueue(w.url("/late"))
            try await w.drain(expecting: 2)
            try await w.sql("UPDATE blacklist_entries SET expires_at = 0")
            #expect(try await w.run("blacklist", "list").lines.count == 1)
            try await w.enqueue(w.url("/late"))
            try await w.drain()
            #expect(try await w.counts("2") == "1|0|0|0|0")
        }
    }

    @Test func optionsDecideWhetherAnImageComesFromTheCacheOrTheNetwork() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"), "--option", "from-cache-only")
            try await w.drain(expecting: 2)
            #expect(try await w.value("SELECT class FROM failures") == "not-cached")
            #expect(w.origin.requests.isEmpty)
            try await w.enqueue(w.url("/1.png"), "--option", "discard-original", "--variant", "t=8x8")
            try await w.drain()
            try await w.run("get", w.url("/1.png"), expecting: 1)
            _ = try await w.path(w.url("/1.png"), variant: "t")
            try await w.enqueue(w.url("/1.png"), "--option", "from-loader-only")
            try await w.drain()
            #expect(w.origin.requests.count == 2)
            try await w.enqueue(w.url("/1.png"), "--option", "from-cache-only")
            try await w.drain()
            #expect(try await w.counts("4") == "0|1|0|0|0")
        }
    }

    @Test func aRefreshSendsConditionalRequestsAndMakesNoVariantAgain() async throws {
        let etag = [(name: "ETag", value: #""one""#)]
        try await withWorker({ request in
            request.header("If-None-Match") == #""one""#
                ? .status(304, headers: etag) : .ok(Pictures.png(3), headers: etag)
        }) { w in
            try await w.enqueue(w.url("/3.png"), "--variant", "t=8x8")
            try await w.drain()
            let made = try await w.value("SELECT max(created_at), count(*) FROM variants")
            for job in ["2", "3"] {
                try await w.enqueue(w.url("/3.png"), "--variant", "t=8x8", "--option", "refresh-cached")
                try await w.drain()
                #expect(try await w.counts(job) == "0|1|0|0|0")
            }
            #expect(w.origin.requests.map { $0.header("If-None-Match") } == [nil, #""one""#, #""one""#])
            #expect(try await w.value("SELECT max(created_at), count(*) FROM variants") == made)
        }
    }
}
