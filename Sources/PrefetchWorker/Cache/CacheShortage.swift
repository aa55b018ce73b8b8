internal import Jobs
internal import Synchronization

/// Acts when nothing more can be evicted: it reclaims dead workers' reservations, and reports what occupies the rest.
final class CacheShortage: Sendable {
    private struct State {
        var search: Task<Int64, any Error>?
        var searchedAt = Int64.min
        var reason: String?
        var toldAt = Int64.min
        /// The time of the first refusal since space was last granted; nil without a refusal since then.
        var refusedSince: Int64?
        var refusedAt = Int64.min
    }

    /// Milliseconds after which a shortage counts as lasting; also the gap after which a refusal is the first of a new
    /// shortage.
    private static let patience: Int64 = 10_000
    /// Milliseconds between two searches through all folders.
    private static let searchEvery: Int64 = 1_000
    private let collector: Collector
    private let state = Mutex(State())

    init(_ collector: Collector) { self.collector = collector }

    /// Reclaims the reservations of dead workers. Concurrent calls coalesce: one searches, and the others wait for its
    /// result.
    ///
    /// - Returns: whether space was reclaimed.
    func reclaimDeadReservations(myself: Int64) async throws -> Bool {
        let now = monotonicMilliseconds()
        let search = state.withLock { state -> Task<Int64, any Error>? in
            if let running = state.search { return running }
            guard state.searchedAt == .min || now - state.searchedAt >= Self.searchEvery else { return nil }
            state.searchedAt = now
            // A task of its own: the first caller may be cancelled while others wait for the same answer.
            let search = Task { [collector] in try await collector.reclaimDeadReservations(myself: myself) }
            state.search = search
            return search
        }
        guard let search else { return false }
        defer { state.withLock { if $0.search == search { $0.search = nil } } }
        return try await search.value > 0
    }

    /// Why there is no space: the limit, and what occupies it. It queries the database at most once a second.
    func tell(excess: Int64, limit: Int64) async throws -> String {
        let now = monotonicMilliseconds()
        if let known = state.withLock({ $0.toldAt != .min && now - $0.toldAt < 1_000 ? $0.reason : nil }) {
            return known
        }
        let store = collector.store
        let totals = try await store.cache.totals()
        let pinned = try await store.cache.pinnedBytes()
        let reason =
            "The cache is full: \(excess) bytes more are needed than its limit of \(limit) (--cache-max-size) leaves. "
            + "\(totals.reservedBytes) bytes are reserved for files that are being fetched and made, \(pinned) are pinned, and "
            + "\(max(0, totals.bytes - pinned)) belong to items in flight."
        state.withLock { ($0.reason, $0.toldAt) = (reason, now) }
        return reason
    }

    /// The latest reported shortage; nil if space was granted since.
    var latest: String? { state.withLock { $0.reason } }

    // MARK: - Its course

    /// A request was refused at `now`, in milliseconds of ``monotonicMilliseconds()``.
    func noteRefusal(at now: Int64) {
        state.withLock { state in
            // A worker that had nothing to do meanwhile has not waited for space.
            if let since = state.refusedSince, since == .min || now - state.refusedAt <= Self.patience {
                state.refusedAt = now
            } else {
                (state.refusedSince, state.refusedAt) = (now, now)
            }
        }
    }

    /// No space will be freed, however long the worker waits.
    func noteHopeless() { state.withLock { $0.refusedSince = .min } }

    /// Whether nothing was granted for ten seconds in which space was asked for, or no space can be freed.
    func lasts(at now: Int64) -> Bool {
        state.withLock { state in
            guard let since = state.refusedSince else { return false }
            return since == .min || now - since > Self.patience
        }
    }

    /// Space was granted.
    func clear() { state.withLock { ($0.reason, $0.toldAt, $0.refusedSince) = (nil, .min, nil) } }
}
