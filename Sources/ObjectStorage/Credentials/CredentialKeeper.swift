internal import Core
internal import Synchronization

/// The credentials in use, fetched anew before they run out.
final class CredentialKeeper: Sendable {
    private struct State {
        var known: Credentials?
        /// Known credentials that expire soon are not fetched again before this time.
        var nextFetch = WallTime.min
        var failures = 0
        var lastFailure: StorageError?
    }

    private let sources: CredentialSources
    private let now: @Sendable () -> WallTime
    private let state = Mutex(State())
    private let fetching = CancellableGate()

    /// New credentials are fetched this many milliseconds before the known ones expire. Machines and containers offer
    /// new ones by then.
    private static let margin: Int64 = 300_000
    /// Milliseconds that credentials have to last, so that a request can be sent with them.
    private static let shortest: Int64 = 10_000
    /// Milliseconds between two fetches while the known credentials are still valid.
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
        // If another task's fetch failed meanwhile, all tasks that waited for it throw its error. Otherwise each would
        // fetch and fail in turn.
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

    /// Drops credentials that a server has called expired.
    func forget(_ used: Credentials) {
        state.withLock { state in
            // Another task may have fetched others already.
            if state.known == used { state.known = nil }
        }
    }

    /// Returns the known credentials if they are still valid, since their source may work again before they expire.
    ///
    /// - Throws: `error` if there are none.
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
