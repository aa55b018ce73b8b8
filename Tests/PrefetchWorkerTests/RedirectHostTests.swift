import Download
import Jobs
import PrefetchWorker
import TestSupport
import Testing

/// After a redirect, limits, Retry-After and failures count for the second host.
@Suite(
    "A worker and the hosts it is redirected to", .timeLimit(.minutes(15)),
    .enabled(if: Workplace.isBuilt, Workplace.notBuilt)
)
struct RedirectHostTests {
    /// Two hosts that are loopback's two names: 127.0.0.1 redirects what is asked for below /r to localhost.
    private func withHosts(
        _ reply: LoopbackReply,
        _ body: (Workplace, _ front: LoopbackOrigin, _ back: LoopbackOrigin) async throws -> Void
    ) async throws {
        let back = try LoopbackOrigin { _ in reply }
        let front = try LoopbackOrigin { [port = back.port] request in
            request.path.hasPrefix("/r")
                ? .redirect(to: "http://localhost:\(port)\(request.path)") : .ok(Pictures.jpeg)
        }
        try await withWorkplace(configure: {
            $0.drains = false
            $0.downloads.circuitBreaker.failures = 1
            $0.downloads.circuitBreaker.time = .seconds(600)
        }) { (place) async throws in try await body(place, front, back) }
    }

    private func statuses(_ place: Workplace) async throws -> [String: HostStatus] {
        Dictionary(uniqueKeysWithValues: try await place.store.hosts.statuses().map { ($0.host, $0) })
    }

    @Test func `Retry-After holds for the host that sent it`() async throws {
        try await withHosts(.status(429, headers: [("Retry-After", "600")])) { (place, front, back) async throws in
            let stop = StopSignal()
            let first = try await place.enqueue([front.url("/r1")])
            async let summary = place.run(stop)
            #expect(try await eventually { try await place.progress(first).delayed == 1 })
            let plain = try await place.enqueue([front.url("/plain")])
            let second = try await place.enqueue([front.url("/r2")])
            #expect(try await eventually { try await place.progress(plain).done == 1 })
            #expect(try await eventually { try await place.progress(second).delayed == 1 })
            let waiting = try await place.history(front.url("/r2"))
            #expect(waiting.message == "localhost asked for a pause (Retry-After).")
            #expect(waiting.attempts == 0)
            #expect(back.requests.count == 1)
            let hosts = try await statuses(place)
            #expect(hosts["localhost"]?.reason == "retry-after")
            #expect(hosts["localhost"]?.failures == ["http-429": 1])
            #expect(hosts["localhost"]?.waiting == 2)
            #expect(hosts["127.0.0.1"]?.notBefore == nil)
            #expect(hosts["127.0.0.1"]?.failures ?? [:] == [:])
            stop.request()
            _ = try await summary
        }
    }

    @Test func `The circuit opens for an unreachable host, and not for the host that redirects to it`() async throws {
        try await withHosts(.noReply) { (place, front, back) async throws in
            back.stop()
            let stop = StopSignal()
            let job = try await place.enqueue([front.url("/r1")])
            async let summary = place.run(stop)
            #expect(try await eventually { try await place.progress(job).delayed == 1 })
            let plain = try await place.enqueue([front.url("/plain")])
            #expect(try await eventually { try await place.progress(plain).done == 1 })
            #expect(try await eventually { try await statuses(place)["localhost"]?.reason == "circuit-open" })
            let hosts = try await statuses(place)
            #expect(hosts["localhost"]?.failures["connect"] == 1)
            #expect(hosts["127.0.0.1"]?.notBefore == nil)
            #expect(hosts["127.0.0.1"]?.failures ?? [:] == [:])
            stop.request()
            _ = try await summary
        }
    }
}
