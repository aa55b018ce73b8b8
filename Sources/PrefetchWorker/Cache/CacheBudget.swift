internal import ContentCache
internal import Core
internal import Jobs
internal import Synchronization

/// Sets room in the cache aside before bytes are written, and makes room where there is none.
///
/// The database knows of what every worker has set aside in all, so that they keep to the limit together. What of it is in
/// use by which file is known here alone: a little is held ready, so that not every piece of a body costs a transaction.
final class CacheBudget: Sendable {
    enum Answer: Sendable {
        case granted
        /// Everything that is left is pinned or in use.
        case full(String)
    }

    private struct State {
        /// The bytes that the database has granted to this worker.
        var granted: Int64 = 0
        /// What files without a row take up of it.
        var used: Int64 = 0
    }

    private let store: JobStore
    private let collector: Collector
    private let shortage: CacheShortage
    private let state = Mutex(State())
    /// Zero until the worker is on the books.
    private let owner = Atomic<Int64>(0)
    /// When room was last set aside.
    private let grantedAt = Atomic<Int64>(monotonicMilliseconds())

    init(store: JobStore, collector: Collector) {
        self.store = store
        self.collector = collector
        shortage = CacheShortage(collector)
    }

    /// Files that get their names now.
    var inHand: PublishingBlobs { collector.inHand }
    /// Why there is no room, where there was none a moment ago.
    var reasonOfShortage: String? { shortage.latest }

    /// Whether there was no room for anything for a while: then the worker pauses, and says what holds it. What merely waits for
    /// its turn under a small limit is put off for a moment, and the others go on.
    var isStuck: Bool { monotonicMilliseconds() - grantedAt.load(ordering: .relaxed) > 10_000 }

    /// What becomes of an item that the cache has no room for at this moment.
    func putOff(_ reason: String, now: WallTime) -> ItemEnding {
        .wait(until: now + Int64.random(in: 50...250), reason: "It waits for room in the cache. \(reason)")
    }

    var limit: Int64? { collector.policy.maxBytes }

    func use(by worker: Int64) { owner.store(worker, ordering: .relaxed) }

    /// Whose room it is; nil where there is no limit, and so nothing is set aside.
    var worker: Int64? {
        let number = owner.load(ordering: .relaxed)
        return collector.policy.maxBytes == nil || number == 0 ? nil : number
    }

    /// For a new file; nil where there is no limit.
    func newRoom() -> CacheReservation? { worker == nil ? nil : CacheReservation(self) }

    func isTooLarge(_ bytes: Int64) -> Bool { limit.map { bytes > $0 } ?? false }

    // MARK: - Taking

    /// Takes room from the spare.
    func takeSpare(_ bytes: Int64) -> Bool {
        state.withLock { state in
            guard state.used + bytes <= state.granted else { return false }
            state.used += bytes
            return true
        }
    }

    /// Sets room aside for files that have none yet, or less than they take.
    ///
    /// - Parameter patiently: waits for what others are about to write down.
    /// - Throws: what went wrong with the database.
    func reserve(_ blobs: [PendingBlob], patiently: Bool = false) async throws -> Answer {
        guard worker != nil else { return .granted }
        var seen: Set<ObjectIdentifier> = []
        let wanted = blobs.filter { blob in
            seen.insert(ObjectIdentifier(blob.file)).inserted && (blob.file.room?.bytes ?? 0) < blob.size
        }
        let bytes = wanted.reduce(0) { $0 + $1.size }
        guard bytes > 0 else { return .granted }
        let answer = try await patiently ? waitForRoom(bytes) : take(bytes)
        if case .granted = answer {
            for blob in wanted { blob.file.reservation.withLock { $0 = CacheReservation(self, bytes: blob.size) } }
        }
        return answer
    }

    /// Room for files that aren't written yet, so many bytes for each.
    ///
    /// - Throws: `diskFull` where nothing more can be evicted.
    func rooms(_ count: Int, of bytes: Int64) async throws(Failure) -> [CacheReservation] {
        let answer: Answer
        do {
            answer = try await waitForRoom(bytes * Int64(count))
        } catch {
            throw Failure(.diskError, "Room in the cache can't be set aside: \(error)")
        }
        if case .full(let reason) = answer { throw Failure(.diskFull, reason) }
        return (0..<count).map { _ in CacheReservation(self, bytes: bytes) }
    }

    /// For files in flight: where there is no room, other files are about to be committed, and may be evicted then.
    func waitForRoom(_ bytes: Int64) async throws -> Answer {
        let deadline = monotonicMilliseconds() + 5_000
        while true {
            let answer = try await take(bytes)
            guard case .full = answer, state.withLock({ $0.used > 0 }), monotonicMilliseconds() < deadline else {
                return answer
            }
            // Cancellation only cuts the nap short, and the deadline ends it.
            try? await Task.sleep(for: .milliseconds(20))
        }
    }

    private func take(_ bytes: Int64) async throws -> Answer {
        guard let limit, let worker else { return .granted }
        // Other workers may take the freed room, so this tries again for as long as something can be freed.
        for _ in 0..<100 {
            // The spare counts: near the limit neither another worker nor its owner could get it.
            let ready = takeReady(upTo: bytes)
            if ready == bytes { return .granted }
            do {
                if try await takeMore(bytes - ready, for: worker, limit) { return .granted }
            } catch {
                giveBack(ready)
                throw error
            }
            giveBack(ready)
            if let answer = try await makeRoom(for: bytes - ready, limit, worker) { return answer }
        }
        return .full("The cache stays full: others take what is freed.")
    }

    private func takeReady(upTo bytes: Int64) -> Int64 {
        state.withLock { state in
            let ready = min(bytes, max(0, state.granted - state.used))
            state.used += ready
            return ready
        }
    }

    /// - Returns: whether the database had as much.
    private func takeMore(_ bytes: Int64, for worker: Int64, _ limit: Int64) async throws -> Bool {
        guard
            case .granted(let granted) = try await store.eviction.reserve(
                bytes, spare: Self.spare(of: limit), for: worker,
                limit: limit - (try await collector.quarantinedBytes()))
        else { return false }
        state.withLock { state in
            state.granted += granted
            state.used += bytes
        }
        grantedAt.store(monotonicMilliseconds(), ordering: .relaxed)
        shortage.isOver()
        return true
    }

    /// - Returns: nil where it is worth another try.
    private func makeRoom(for bytes: Int64, _ limit: Int64, _ worker: Int64) async throws -> Answer? {
        let report = try await collector.makeRoom(for: bytes)
        guard report.evictedBlobs == 0, report.quarantined == 0 else { return nil }
        if let trouble = report.trouble { return .full(trouble) }
        let totals = try await store.cache.totals()
        let quarantined = try await collector.quarantinedBytes()
        let excess = totals.bytes + totals.reservedBytes + quarantined + bytes - limit
        guard excess > 0 else { return nil }
        if try await shortage.settleDead(myself: worker) { return nil }
        // Where nothing is on its way, nothing will go by itself.
        if totals.reservedBytes == 0 { grantedAt.store(0, ordering: .relaxed) }
        return .full(try await shortage.tell(excess: excess, limit: limit))
    }

    /// The spare that is granted beyond each request: little beside the limit, and enough to save transactions.
    private static func spare(of limit: Int64) -> Int64 { min(4 << 20, limit / 64) }

    // MARK: - Giving back

    func giveBack(_ bytes: Int64) { state.withLock { $0.used -= bytes } }

    /// Files that the index counts from now on, and their room in the database no longer.
    func handOver(_ blobs: [PendingBlob], counted: [String: Int64]) {
        var counted = counted
        for blob in blobs {
            guard let bytes = counted.removeValue(forKey: blob.hash.hex) else { continue }
            let held = blob.file.room?.handOver() ?? 0
            state.withLock { state in
                state.granted -= bytes
                state.used -= held
            }
        }
    }

    /// Gives back the spare that isn't needed.
    func trim() async throws {
        guard let limit, let worker else { return }
        let excess = state.withLock { state in
            // When nothing is on its way, nothing needs to be held ready.
            let keep = state.used == 0 ? 0 : Self.spare(of: limit)
            let excess = max(0, state.granted - state.used - keep)
            state.granted -= excess
            return excess
        }
        if excess > 0 { try await store.eviction.giveBack(excess, of: worker) }
    }
}
