internal import Core
internal import Synchronization

/// The credentials in use, fetched anew before they run out.
final class CredentialKeeper: Sendable {
    private struct State {
        var known: Credentials?
        /// Until then known ones are not fetched again, though they run out soon.
        var nextFetch = WallTime.min
        var failures = 0
        var lastFailure: StorageError?
    }

    private let sources: CredentialSources
    private let now: @Sendable () -> WallTime
    private let state = Mutex(State())
    private let fetching = CancellableGate()

    /// Milliseconds before their end at which others are fetched. Machines and containers have new ones by then.
    private static let margin: Int64 = 300_000
    /// Milliseconds that credentials have to last, so that a request can be sent with them.
    private static let shortest: Int64 = 10_000
    /// Milliseconds between two fetches while known ones still last.
    private static let pause: Int64 = 10_000

    init(_ sources: CredentialSources, now: @escaping @Sendable () -> WallTime) {
        self.sources = sources
        self.now = now
    }

    func credentials() async throws(StorageError) -> Credentials {
        if let fresh { return fresh }
        let failures = state.withLock { $0.failures }
        // One task fetches them for all that wait.
        guard await fetching.enter() else { throw StorageError(.cancelled, "The task was cancelled.") }
        defer { fetching.leave() }
        if let fresh { return fresh }
        // Another one's failure is the answer for all that waited meanwhile, or they would fail one after another.
        if let failure = state.withLock({ $0.failures > failures ? $0.lastFailure : nil }) { throw failure }
        do {
            let fetched = try await sources.fetch()
            state.withLock { state in
                (state.known, state.nextFetch) = (fetched, now() + Self.pause)
            }
            return fetched
        } catch {
            return try instead(of: error)
        }
    }

    /// A server has said that these have run out.
    func forget(_ used: Credentials) {
        state.withLock { state in
            // Another task may have fetched others already.
            if state.known == used { state.known = nil }
        }
    }

    /// Known credentials that still last: their source may have others again before they run out.
    private func instead(of error: StorageError) throws(StorageError) -> Credentials {
        let lasting = state.withLock { state -> Credentials? in
            guard error.code != .cancelled else { return nil }
            if let known = state.known, lasts(known, Self.shortest) {
                state.nextFetch = now() + Self.pause
                return known
            }
            state.failures += 1
            state.lastFailure = error
            return nil
        }
        guard let lasting else { throw error }
        return lasting
    }

    private var fresh: Credentials? {
        state.withLock { state in
            guard let known = state.known else { return nil }
            return lasts(known, now() < state.nextFetch ? Self.shortest : Self.margin) ? known : nil
        }
    }

    private func lasts(_ credentials: Credentials, _ milliseconds: Int64) -> Bool {
        credentials.expiresAt.map { $0 - now() > milliseconds } ?? true
    }
}
