internal import ContentCache
internal import Jobs
internal import Logging
internal import Synchronization

/// Sets room in the cache aside before files get their names, and makes room where there is none.
final class CacheBudget: Sendable {
    enum Answer: Sendable {
        case granted
        /// Everything that is left is pinned or in use.
        case full(String)
        /// It would not fit into an empty cache.
        case tooLarge(String)
    }

    private let store: JobStore
    private let collector: Collector
    /// Zero until the worker is on the books.
    private let owner = Atomic<Int64>(0)

    init(store: JobStore, collector: Collector) {
        self.store = store
        self.collector = collector
    }

    var limit: Int64? { collector.policy.maxBytes }

    func use(by worker: Int64) { owner.store(worker, ordering: .relaxed) }

    /// Whose room it is; nil where there is no limit, and so nothing is set aside.
    var worker: Int64? {
        let number = owner.load(ordering: .relaxed)
        return collector.policy.maxBytes == nil || number == 0 ? nil : number
    }

    /// - Throws: what went wrong with the database.
    func reserve(_ blobs: [PendingBlob]) async throws -> Answer {
        guard let limit = collector.policy.maxBytes, let worker, !blobs.isEmpty else { return .granted }
        let wanted = blobs.map { (hash: $0.hash.hex, size: $0.size) }
        let bytes = wanted.reduce(0) { $0 + $1.size }
        // Others may take what was freed: so it is tried again for as long as something can be freed.
        for _ in 0..<100 {
            switch try await store.reserve(wanted, for: worker, limit: limit) {
            case .granted: return .granted
            case .short(let excess):
                if bytes > limit, blobs.count == 1 {
                    return .tooLarge("It takes \(bytes) bytes, and the whole cache may hold \(limit).")
                }
                let report = try await collector.makeRoom(for: bytes)
                if let trouble = report.trouble { return .full(trouble) }
                guard report.evictedBlobs == 0 else { continue }
                let totals = try await store.cacheTotals()
                if totals.bytes + totals.reservedBytes + bytes > limit {
                    return .full(
                        "The cache is full: \(excess) bytes more are needed than its limit of \(limit) leaves, and what it "
                            + "holds is pinned or in use.")
                }
            }
        }
        return .full("The cache stays full: others take what is freed.")
    }
}
