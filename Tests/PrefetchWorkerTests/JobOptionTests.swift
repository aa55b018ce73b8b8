import Download
import Jobs
import PrefetchWorker
import TestSupport
import Testing

/// Job options that change downloads.
@Suite(
    "A job's options and its downloads", .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct JobOptionTests {
    private func results(_ place: Workplace, _ urls: [String], _ options: String?) async throws -> [String?] {
        let job = try await place.enqueue(urls, options: options)
        try await place.drain()
        return try await place.store.reports.results(job: job, after: 0, limit: 10).map(\.failure)
    }

    @Test func `handle-cookies: a job has a cookie jar of its own`() async throws {
        let origin = try LoopbackOrigin { request in
            .ok(Pictures.jpeg + Array(request.path.utf8), headers: [("Set-Cookie", "seen=yes")])
        }
        try await withWorkplace(configure: { $0.downloads.concurrency = 1 }) { (place) async throws in
            let paths = ["/1", "/2"]
            for (prefix, options) in [("/plain", nil), ("/cookies", "handle-cookies"), ("/again", "handle-cookies")] {
                let found = try await results(place, paths.map { origin.url(prefix + $0) }, options)
                #expect(found == [nil, nil])
            }
        }
        // The first request of a job has none yet, whichever of the two it is.
        func cookies(_ prefix: String) -> Set<String?> {
            Set(origin.requests.filter { $0.path.hasPrefix(prefix) }.map { $0.header("Cookie") })
        }
        #expect(origin.requests.count == 6)
        #expect(cookies("/plain") == [nil])
        #expect(cookies("/cookies") == [nil, "seen=yes"])
        #expect(cookies("/again") == [nil, "seen=yes"])
    }

    @Test func `respect-robots-tag: a picture with X-Robots-Tag noai fails`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg, headers: [("X-Robots-Tag", "noai")]) }
        try await withWorkplace { (place) async throws in
            #expect(try await results(place, [origin.url("/a")], nil) == [nil])
            #expect(try await results(place, [origin.url("/b")], "respect-robots-tag") == ["opt-out"])
        }
    }

    @Test func `respect-robots-txt: robots.txt is requested first and obeyed`() async throws {
        let origin = try LoopbackOrigin { request in
            request.path == "/robots.txt" ? .ok(Array("User-agent: *\nDisallow: /b".utf8)) : .ok(Pictures.jpeg)
        }
        try await withWorkplace { (place) async throws in
            #expect(try await results(place, [origin.url("/b/1")], nil) == [nil])
            #expect(origin.requestCount("/robots.txt") == 0)
            #expect(
                try await results(place, [origin.url("/a"), origin.url("/b/2")], "respect-robots-txt")
                    == [nil, "opt-out"])
            #expect(origin.requestCount("/b/2") == 0)
        }
    }

    /// As a job that was inserted by SQL: the worker is the first to check it.
    @Test func `A header that can't be sent ends the job, with the reason`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace { (place) async throws in
            let headers = ["X-Key": "1\r\nHost: evil"]
            let job = try #require(
                try await place.store.queue.enqueue(NewJob(urls: [origin.url("/a")], headers: headers)))
            try await place.drain()
            let progress = try await place.progress(job)
            #expect(progress.state == .failed)
            #expect(progress.error?.hasPrefix("The header X-Key has a value that can't be sent") == true)
            #expect(origin.requests.isEmpty)
        }
    }

    /// The secure origin has no pictures: the failure not-an-image shows that the certificate was accepted.
    @Test(.enabled(if: SecureOrigin.isAvailable))
    func `allow-invalid-ssl-certificates: an origin with an invalid certificate is accepted`() async throws {
        try await withTemporaryDirectory { scratch in
            let origin = try SecureOrigin(scratch: scratch)
            try await withWorkplace { (place) async throws in
                #expect(try await results(place, [origin.url(.own)], nil) == ["tls-certificate"])
                let options = "allow-invalid-ssl-certificates"
                #expect(try await results(place, [origin.url(.own)], options) == ["not-an-image"])
            }
            origin.stop()
        }
    }

    @Test func `accept-damaged: a truncated picture is accepted and marked, for this job only`() async throws {
        let whole = TestImages.png(64, 48)
        let damaged = Array(whole.prefix(whole.count * 2 / 3))
        let origin = try LoopbackOrigin { _ in .ok(damaged) }
        try await withWorkplace { (place) async throws in
            let url = origin.url("/a")
            func row(_ options: String?) async throws -> ResultRow {
                let job = try await place.enqueue([url], variants: "v=20x,webp", options: options)
                try await place.drain()
                return try #require(try await place.store.reports.results(job: job, after: 0, limit: 10).last)
            }
            let before = try await row(nil)
            #expect(before.failure == "truncated" && before.damage == nil)
            // Neither what is listed for others holds for it, nor does what it made serve others.
            let accepted = try await row("accept-damaged")
            #expect(
                accepted.failure == nil && accepted.variant == "v" && accepted.damage?.isEmpty == false, "\(accepted)")
            let again = try await row("accept-damaged")
            #expect(again.cached && again.blob == accepted.blob && again.damage == accepted.damage)
            #expect(try await row("retry-failed").failure == "truncated")
        }
    }
}
