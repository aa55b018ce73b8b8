import Core
import Synchronization
import TestSupport
import Testing

@testable import ObjectStorage

/// A container's service whose credentials expire, and a clock that tests move.
@Suite("Keeping credentials", .timeLimit(.minutes(5)))
struct CredentialKeeperTests {
    final class Clock: Sendable {
        private let time = Mutex(WallTime(milliseconds: 1_795_685_400_000))

        var now: WallTime { time.withLock { $0 } }

        func pass(seconds: Int64) { time.withLock { $0 = $0 + seconds * 1_000 } }
    }

    private static func answer(_ id: String, end: String) -> LoopbackReply {
        .ok(
            Array(
                "{\"AccessKeyId\":\"\(id)\",\"SecretAccessKey\":\"S\",\"Token\":\"T\",\"Expiration\":\"\(end)\"}".utf8))
    }

    private func keeper(_ origin: LoopbackOrigin, _ clock: Clock) -> CredentialKeeper {
        let settings = CredentialSettings(
            environment: ["AWS_CONTAINER_CREDENTIALS_FULL_URI": origin.url("/")].value)
        return CredentialKeeper(
            CredentialSources(settings: settings, region: "r", client: HTTPClient(HTTPClient.Settings())),
            now: { clock.now })
    }

    @Test func `Credentials are fetched once for all calls, and again five minutes before they expire`() async throws {
        let origin = try LoopbackOrigin(script: [
            "/": [
                .delayed(milliseconds: 50, then: Self.answer("ID1", end: "2026-11-26T10:30:00Z")),
                Self.answer("ID2", end: "2026-11-26T11:30:00Z"),
            ]
        ])
        let clock = Clock()
        let keeper = keeper(origin, clock)
        let ids = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<50 { group.addTask { try await keeper.credentials().keyID } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(ids == ["ID1"])
        clock.pass(seconds: 54 * 60)
        #expect(try await keeper.credentials().keyID == "ID1")
        #expect(origin.requests.count == 1)
        clock.pass(seconds: 2 * 60)
        #expect(try await keeper.credentials().keyID == "ID2")
        #expect(origin.requests.count == 2)
    }

    @Test(arguments: [(500, StorageError.Code.unreachable), (403, .denied)])
    func `Credentials are used until they expire, even if a new fetch fails`(
        _ status: Int, _ code: StorageError.Code,
    ) async throws {
        let origin = try LoopbackOrigin(script: [
            "/": [Self.answer("ID1", end: "2026-11-26T10:30:00Z"), .status(status)]
        ])
        let clock = Clock()
        let keeper = keeper(origin, clock)
        _ = try await keeper.credentials()
        clock.pass(seconds: 56 * 60)
        #expect(try await keeper.credentials().keyID == "ID1")
        let asked = origin.requests.count
        #expect(try await keeper.credentials().keyID == "ID1")
        // Not with each request.
        #expect(origin.requests.count == asked)
        clock.pass(seconds: 4 * 60)
        #expect(await storageError { _ = try await keeper.credentials() }?.code == code)
    }

    @Test func `Credentials of a short life are not fetched with each request`() async throws {
        let origin = try LoopbackOrigin { _ in Self.answer("ID", end: "2026-11-26T09:31:00Z") }
        let keeper = keeper(origin, Clock())
        for _ in 0..<20 { _ = try await keeper.credentials() }
        #expect(origin.requests.count == 1)
    }

    @Test func `One failed fetch fails all calls that waited for it`() async throws {
        let barrier = Barrier()
        let started = Counter()
        let origin = try LoopbackOrigin { _ in
            barrier.pass()
            return .status(403)
        }
        let keeper = keeper(origin, Clock())
        await withTaskGroup(of: StorageError.Code?.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    started.add()
                    return await storageError { _ = try await keeper.credentials() }?.code
                }
            }
            while started.value < 20 { await Task.yield() }
            barrier.open()
            for await code in group { #expect(code == .denied) }
        }
        // One that came late asks by itself.
        #expect(origin.requests.count < 5)
        #expect(await storageError { _ = try await keeper.credentials() }?.code == .denied)
    }

    @Test func `A waiting call can be cancelled, and the others get their credentials`() async throws {
        let barrier = Barrier()
        let origin = try LoopbackOrigin { _ in
            barrier.pass()
            return Self.answer("ID", end: "2026-11-26T10:30:00Z")
        }
        let keeper = keeper(origin, Clock())
        let first = Task { try await keeper.credentials().keyID }
        while origin.requests.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
        let second = Task { await storageError { _ = try await keeper.credentials() } }
        let third = Task { try await keeper.credentials().keyID }
        try await Task.sleep(for: .milliseconds(50))
        second.cancel()
        #expect(await second.value?.code == .cancelled)
        barrier.open()
        #expect(try await first.value == "ID")
        #expect(try await third.value == "ID")
    }

    @Test func `The call that fetches can be cancelled, and another call fetches`() async throws {
        let origin = try LoopbackOrigin(script: [
            "/": [.silence, Self.answer("ID", end: "2026-11-26T10:30:00Z")]
        ])
        let keeper = keeper(origin, Clock())
        let first = Task { await storageError { _ = try await keeper.credentials() } }
        while origin.requests.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
        let second = Task { try await keeper.credentials().keyID }
        try await Task.sleep(for: .milliseconds(50))
        first.cancel()
        #expect(await first.value?.code == .cancelled)
        #expect(try await second.value == "ID")
    }

    @Test func `Credentials that a server calls expired are fetched again`() async throws {
        let service = try LoopbackOrigin(script: [
            "/": [Self.answer("ID1", end: "2099-11-26T10:30:00Z"), Self.answer("ID2", end: "2099-11-26T10:30:00Z")]
        ])
        let origin = try LoopbackOrigin {
            $0.header("authorization")?.contains("ID1") == true ? failing(400, "ExpiredToken") : .ok([7])
        }
        let settings = CredentialSettings(
            environment: ["AWS_CONTAINER_CREDENTIALS_FULL_URI": service.url("/")].value)
        #expect(try await bucket(at: origin, credentials: settings).bytes(of: "a") == [7])
        #expect(origin.requests.count == 2)
    }

    @Test func `Expired fixed keys fail after one request`() async throws {
        let origin = try LoopbackOrigin { _ in failing(403, "ExpiredToken") }
        let error = await storageError { _ = try await bucket(at: origin).bytes(of: "a") }
        #expect(error?.code == .denied)
        #expect(origin.requests.count == 1)
    }
}
