internal import ContentCache
internal import Core
internal import Jobs
internal import Synchronization

/// Reserves space in the cache before bytes are written, and evicts files if there is none.
///
/// The database stores every worker's reservations, so all keep to one limit. Only this object knows which file uses
/// which part. It keeps a small spare, so that not every chunk of a body costs a transaction.
final class CacheBudget: Sendable {
    enum Answer: Sendable {
        case granted
        /// All remaining files are pinned or in use.
        case full(String)
    }

    private struct State {
        /// The bytes that the database has granted to this worker.
        var granted: Int64 = 0
        /// The part of `granted` that files without a row occupy.
        var used: Int64 = 0
    }

    private let store: JobStore
    private let collector: Collector
    private let shortage: CacheShortage
    private let state = Mutex(State())
    /// Zero until the worker is registered.
    private let owner = Atomic<Int64>(0)
    /// When space was last reserved.
    private let grantedAt = Atomic<Int64>(monotonicMilliseconds())

    /// Whether a file may wait for space as long as other files get some.
    private let isPatient: Bool
    /// The items that wait for space.
    let waits = SpaceWaits()
    /// Milliseconds that a file waits while others are in flight, at most.
    private static let patience: Int64 = 5_000
    /// The same for a picture stored by hand, which is not tried again. A disk that is busy with other programs' work
    /// may need many seconds for the syncs of one group.
    private static let longPatience: Int64 = 60_000

    /// - Parameter isPatient: for pictures that are stored by hand, of which more may be in flight than fit into the
    ///   cache; an item that gets no space in time is delayed instead.
    init(store: JobStore, collector: Collector, isPatient: Bool = false) {
        self.store = store
        self.collector = collector
        self.isPatient = isPatient
        shortage = CacheShortage(collector)
    }

    /// Files that are being published.
    var publishing: PublishingBlobs { collector.publishing }
    /// Why there is no space, if there was none a moment ago.
    var reasonOfShortage: String? { shortage.latest }

    /// Whether space was refused for ten seconds, and none granted; then a shortage makes the worker pause and report
    /// what occupies the cache. Otherwise, as under a small limit, only the item is delayed for a moment.
    var isStuck: Bool { shortage.lasts(at: monotonicMilliseconds()) }

    /// The ending of an item for which the cache has no space now.
    func shortageEnding(_ reason: String, now: WallTime) -> ItemEnding {
        .wait(until: now + Int64.random(in: 50...250), reason: "It waits for space in the cache. \(reason)")
    }

    var limit: Int64? { collector.policy.maxBytes }

    func use(by worker: Int64) { owner.store(worker, ordering: .relaxed) }

    /// The worker that owns the reservations; nil if there is no limit, so that nothing is reserved.
    var worker: Int64? {
        let number = owner.load(ordering: .relaxed)
        return collector.policy.maxBytes == nil || number == 0 ? nil : number
    }

    /// A reservation for a new file; nil if there is no limit.
    ///
    /// - Parameter item: the item that is reported as waiting while there is no space.
    func newReservation(for item: Int64? = ProcessTurns.item) -> CacheReservation? {
        worker == nil ? nil : CacheReservation(self, item: item)
    }

    func isTooLarge(_ bytes: Int64) -> Bool { limit.map { bytes > $0 } ?? false }

    // MARK: - Taking

    /// Takes space from the spare.
    func takeSpare(_ bytes: Int64) -> Bool {
        state.withLock { state in
            guard state.used + bytes <= state.granted else { return false }
            state.used += bytes
            return true
        }
    }

    /// Reserves space for files that have no reservation yet, or one smaller than the file.
    ///
    /// - Parameter patiently: whether to wait for other files to be committed.
    /// - Throws: errors of the database.
    func reserve(_ blobs: [PendingBlob], patiently: Bool = false) async throws -> Answer {
        guard worker != nil else { return .granted }
        var seen: Set<ObjectIdentifier> = []
        let wanted = blobs.filter { blob in
            seen.insert(ObjectIdentifier(blob.file)).inserted && (blob.file.cacheReservation?.bytes ?? 0) < blob.size
        }
        let bytes = wanted.reduce(0) { $0 + $1.size }
        guard bytes > 0 else { return .granted }
        let answer = try await patiently ? waitForSpace(bytes) : take(bytes)
        if case .granted = answer {
            for blob in wanted { blob.file.reservation.withLock { $0 = CacheReservation(self, bytes: blob.size) } }
        }
        return answer
    }

    /// Reserves `bytes` for each of `count` files that are not written yet.
    ///
    /// - Throws: `diskFull` if nothing more can be evicted.
    func reservations(_ count: Int, of bytes: Int64) async throws(Failure) -> [CacheReservation] {
        let answer: Answer
        do {
            answer = try await waitForSpace(bytes * Int64(count))
        } catch {
            throw Failure(.diskError, "Space in the cache can't be reserved: \(error)")
        }
        if case .full(let reason) = answer { throw Task.isCancelled ? .stopped() : Failure.cacheIsFull(reason) }
        return (0..<count).map { _ in CacheReservation(self, bytes: bytes) }
    }

    /// For files in flight: if there is no space, it waits, since other files will be committed soon and can then be
    /// evicted.
    ///
    /// - Parameter item: the item that is reported as waiting.
    func waitForSpace(_ bytes: Int64, for item: Int64? = ProcessTurns.item) async throws -> Answer {
        let started = monotonicMilliseconds()
        var isReported = false
        defer { if isReported, let item { waits.ended(item) } }
        while true {
            let answer = try await take(bytes)
            let since = isPatient ? max(started, grantedAt.load(ordering: .relaxed)) : started
            guard case .full(let reason) = answer, monotonicMilliseconds() - since < patience else { return answer }
            if !isReported, let item {
                waits.began(item, reason)
                isReported = true
            }
            do {
                try await Task.sleep(for: .milliseconds(20))
            } catch {
                // A cancelled item needs no space any more.
                return answer
            }
        }
    }

    /// Milliseconds that a file waits at most; if `isPatient`, they start again whenever any file gets space.
    private var patience: Int64 {
        let hasFilesInFlight = state.withLock { $0.used > 0 }
        // Files that were just committed stay open for a moment, and are not evicted as long as they are.
        guard isPatient else { return hasFilesInFlight ? Self.patience : 0 }
        return hasFilesInFlight ? Self.longPatience : Self.patience
    }

    private func take(_ bytes: Int64) async throws -> Answer {
        guard let limit, let worker else { return .granted }
        let answer = try await take(bytes, limit, worker)
        if case .full = answer { shortage.noteRefusal(at: monotonicMilliseconds()) }
        return answer
    }

    private func take(_ bytes: Int64, _ limit: Int64, _ worker: Int64) async throws -> Answer {
        // Other workers may take the freed space, so this repeats as long as something can be freed.
        for _ in 0..<100 {
            // The spare counts too: near the limit neither this worker nor another could use it otherwise.
            let ready = takeReady(upTo: bytes)
            if ready == bytes { return .granted }
            do {
                if try await takeMore(bytes - ready, for: worker, limit) { return .granted }
            } catch {
                giveBack(ready)
                throw error
            }
            giveBack(ready)
            if let answer = try await freeSpace(for: bytes - ready, limit, worker) { return answer }
        }
        return .full("The cache stays full: other workers reserve the freed space first.")
    }

    private func takeReady(upTo bytes: Int64) -> Int64 {
        state.withLock { state in
            let ready = min(bytes, max(0, state.granted - state.used))
            state.used += ready
            return ready
        }
    }

    /// - Returns: whether the database granted it.
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
        shortage.clear()
        return true
    }

    /// - Returns: nil if another try makes sense.
    private func freeSpace(for bytes: Int64, _ limit: Int64, _ worker: Int64) async throws -> Answer? {
        let report = try await collector.freeSpace(for: bytes)
        guard report.evictedBlobs == 0, report.quarantined == 0 else { return nil }
        if let trouble = report.trouble { return .full(trouble) }
        let totals = try await store.cache.totals()
        let quarantined = try await collector.quarantinedBytes()
        let excess = totals.bytes + totals.reservedBytes + quarantined + bytes - limit
        guard excess > 0 else { return nil }
        if try await shortage.reclaimDeadReservations(myself: worker) { return nil }
        // Without transfers in flight, no space will be freed.
        if totals.reservedBytes == 0 {
            grantedAt.store(0, ordering: .relaxed)
            shortage.noteHopeless()
        }
        return .full(try await shortage.tell(excess: excess, limit: limit))
    }

    /// The spare beyond each request: small compared with the limit, and enough to save transactions.
    private static func spare(of limit: Int64) -> Int64 { min(4 << 20, limit / 64) }

    // MARK: - Giving back

    func giveBack(_ bytes: Int64) { state.withLock { $0.used -= bytes } }

    /// The index counts these files from now on, so they no longer need a reservation.
    func handOver(_ blobs: [PendingBlob], counted: [String: Int64]) {
        var counted = counted
        for blob in blobs {
            guard let bytes = counted.removeValue(forKey: blob.hash.hex) else { continue }
            let held = blob.file.cacheReservation?.handOver() ?? 0
            state.withLock { state in
                state.granted -= bytes
                state.used -= held
            }
        }
    }

    /// Gives back the spare that is not needed.
    func trim() async throws {
        guard let limit, let worker else { return }
        let excess = state.withLock { state in
            // Without transfers in flight, no spare is needed.
            let keep = state.used == 0 ? 0 : Self.spare(of: limit)
            let excess = max(0, state.granted - state.used - keep)
            state.granted -= excess
            return excess
        }
        if excess > 0 { try await store.eviction.giveBack(excess, of: worker) }
    }
}
