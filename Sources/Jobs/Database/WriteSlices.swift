internal import GRDB
internal import Glibc
internal import Synchronization

/// Background work, done in slices beside workers that wait for the same lock.
public enum Upkeep: String, Sendable, CaseIterable {
    /// Marking files for eviction.
    case marking
    /// Taking evicted files out of the index, and deleting their rows.
    case eviction
    /// Forgetting URLs that no job has asked for lately.
    case urls
    /// Removing ended jobs and their items.
    case prune
    /// Ending the items of jobs that were cancelled.
    case sweep
    /// Noting that links were removed.
    case links
    /// Moving the log into the database, so many pieces of 64 KiB of it.
    case checkpoint

    /// Whether a slice is on the disk before the next step: a file is deleted only when nothing can forget why it is
    /// gone. The others cost nothing when a crash of the machine undoes them, and so needn't hold the lock while the
    /// disk syncs.
    var isDurable: Bool { self == .marking }

    /// Rows a slice, at first and at most.
    fileprivate var slice: SliceSize {
        switch self {
        case .marking: SliceSize(rows: 64, most: 256)
        case .eviction: SliceSize(rows: 16, least: 4, most: 64)
        // They end by the clock as well. With fewer rows a busy machine, on which any slice may take long, falls
        // behind.
        case .urls, .prune, .links: SliceSize(rows: 64, least: 8, most: 512)
        // A row takes 4 µs, so that the fewest take 4 ms; with fewer a busy machine, on which any slice may take long,
        // falls behind.
        case .sweep: SliceSize(rows: 2_048, least: 1_024, most: 8_192)
        // Each syncs twice, however little it moves.
        case .checkpoint: SliceSize(rows: 64, least: 8, most: 64)
        }
    }
}

/// How many rows a slice takes: fewer after one that held the lock for long, more after one that did not.
///
/// The longest that a slice should hold the lock is 50 ms; the law aims at half of that, so that one which suddenly
/// takes twice as long as the last still keeps to it.
struct SliceSize: Hashable, Sendable {
    private(set) var rows: Int
    var least = 1
    let most: Int

    static let long: Int64 = 25_000_000
    static let quick: Int64 = 8_000_000

    /// - Parameter handled: how many rows the slice had. One that found less to do than it might says nothing of more.
    mutating func took(nanoseconds: Int64, handled: Int) {
        if nanoseconds > Self.long {
            rows = max(least, min(rows, handled) / 2)
        } else if nanoseconds < Self.quick, handled >= rows {
            rows = min(most, rows * 2)
        }
    }
}

/// The sizes of a store's slices, and the longest that each kind held the lock.
final class SliceLedger: Sendable {
    private struct State {
        var sizes: [Upkeep: SliceSize] = [:]
        var longest: [Upkeep: Int64] = [:]
    }

    private let state = Mutex(State())

    func rows(_ upkeep: Upkeep) -> Int { state.withLock { ($0.sizes[upkeep] ?? upkeep.slice).rows } }

    func took(_ upkeep: Upkeep, nanoseconds: Int64, handled: Int) {
        state.withLock { state in
            state.sizes[upkeep, default: upkeep.slice].took(nanoseconds: nanoseconds, handled: handled)
            state.longest[upkeep] = max(nanoseconds, state.longest[upkeep] ?? 0)
        }
    }

    /// In nanoseconds.
    var longest: [Upkeep: Int64] { state.withLock { $0.longest } }

    static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

/// Upkeep: a slice at a time under the write lock, and how long each has held it, for the metrics.
extension DatabaseGate {
    /// One slice of background work: few enough rows that other writers don't wait for long.
    ///
    /// - Parameter body: is told how many rows it may take, and says how many it took.
    func writeSlice<R: Sendable>(
        _ upkeep: Upkeep, _ body: @escaping @Sendable (Database, Int) throws -> (result: R, handled: Int),
    ) async throws(JobsError) -> R {
        try await perform { [self] in
            try atMyTurn {
                let start = SliceLedger.now()
                var handled = 0
                defer { slices.took(upkeep, nanoseconds: SliceLedger.now() - start, handled: handled) }
                return try database.writeWithoutTransaction { db in
                    try setDurability(upkeep.isDurable, of: db)
                    let slice = try Self.transaction(db) { try body($0, slices.rows(upkeep)) }
                    handled = slice.handled
                    return slice.result
                }
            }
        }
    }

    /// How long one slice goes on. It finishes the row that it is at, and commits.
    static let sliceNanoseconds: Int64 = 15_000_000

    /// Does something to one element after the other, to one at least, until a slice has gone on for long.
    ///
    /// - Returns: how many it came to.
    static func untilTimeIsUp<S: Sequence>(
        _ elements: S, within nanoseconds: Int64 = sliceNanoseconds, _ body: (S.Element) throws -> Void,
    ) rethrows -> Int {
        let end = SliceLedger.now() + nanoseconds
        var count = 0
        for element in elements {
            if count > 0, SliceLedger.now() >= end { break }
            try body(element)
            count += 1
        }
        return count
    }

    /// Between two slices: a third of the time that the last one took, so that a program which looks for the lock every
    /// 100 ms, as SQLite's own busy handler does, finds it free within a second or two.
    ///
    /// - Parameter nanoseconds: how long the slice took.
    func breathe(after nanoseconds: Int64 = 0) async {
        // Cancellation only cuts the nap short.
        try? await Task.sleep(for: .nanoseconds(min(max(nanoseconds / 3, 4_000_000), 50_000_000)))
    }

    private static let prefix = "write-lock-microseconds-"

    /// Saves the longest slices, where they are longer than the saved ones. Called when a round of upkeep ends.
    public func noteSlices() async throws(JobsError) {
        let known = try await longestSlices()
        let longer = slices.longest.filter { ($0.value / 1_000) > (known[$0.key] ?? 0) }
        guard !longer.isEmpty else { return }
        try await write { db in
            for (upkeep, nanoseconds) in longer {
                try CacheProperty.set(Self.prefix + upkeep.rawValue, to: "\(nanoseconds / 1_000)", in: db)
            }
        }
    }

    /// The longest that a slice of each kind has ever held the write lock, in microseconds.
    public func longestSlices() async throws(JobsError) -> [Upkeep: Int64] {
        try await read { db in
            try Upkeep.allCases.reduce(into: [:]) { longest, upkeep in
                longest[upkeep] = try CacheProperty.value(Self.prefix + upkeep.rawValue, in: db).flatMap { Int64($0) }
            }
        }
    }
}
