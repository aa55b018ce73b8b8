internal import Core
internal import Glibc
internal import Synchronization

/// Background work, done in slices between the writes of workers.
public enum Upkeep: String, Sendable, CaseIterable {
    /// Adding the items of a long list, and removing those of one that was not completed.
    case enqueue
    /// Marking files for eviction.
    case marking
    /// Deleting the index rows of evicted files.
    case eviction
    /// Forgetting URLs that no job has requested lately.
    case urls
    /// Removing ended jobs and their items.
    case prune
    /// Ending the items of jobs that were cancelled.
    case sweep
    /// Deleting the notes about removed links.
    case links
    /// Moving the log into the database, in units of 64 KiB.
    case checkpoint

    /// Whether a slice is synced before the next step: a file is deleted only after the reason for it is durable. The
    /// other kinds lose nothing if a crash of the machine undoes them, so they need not hold the lock while the disk
    /// syncs.
    var isDurable: Bool { self == .marking }

    /// The initial, the minimum and the maximum number of rows of a slice.
    fileprivate var slice: SliceSize {
        switch self {
        case .marking: SliceSize(rows: 64, most: 256)
        case .eviction: SliceSize(rows: 16, least: 4, most: 64)
        // These slices also end after a time. With fewer rows they fall behind on a busy machine, where any slice may
        // take long.
        case .urls, .prune, .links: SliceSize(rows: 64, least: 8, most: 512)
        // A row takes 4 µs, so the first slice takes 16 ms, and its pause is a quarter of the time. With slices of
        // 2,048 rows (8 ms) the shortest pause, 4 ms, was a third of the time. With fewer rows the work falls behind on
        // a busy machine, where any slice may take long.
        case .sweep, .enqueue: SliceSize(rows: 4_096, least: 1_024, most: 8_192)
        // Each checkpoint syncs twice, even if it moves little.
        case .checkpoint: SliceSize(rows: 64, least: 8, most: 64)
        }
    }
}

/// The number of rows of a slice: it shrinks after a slice that held the lock too long, and grows after a short one.
///
/// A slice should hold the lock for at most 50 ms. The size is adjusted to half of that, so a slice that suddenly takes
/// twice as long as the last one is still within the limit.
struct SliceSize: Hashable, Sendable {
    private(set) var rows: Int
    var least = 1
    let most: Int

    static let long: Int64 = 25_000_000
    static let quick: Int64 = 8_000_000

    /// - Parameter handled: the number of rows that the slice processed. A slice with fewer rows than allowed does not
    ///   grow the size.
    mutating func took(nanoseconds: Int64, handled: Int) {
        if nanoseconds > Self.long {
            rows = max(least, min(rows, handled) / 2)
        } else if nanoseconds < Self.quick, handled >= rows {
            rows = min(most, rows * 2)
        }
    }
}

/// The sizes of a store's slices, and how long each kind held the lock at most.
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

/// Runs upkeep in slices under the write lock, and measures how long each held it, for the metrics.
extension DatabaseGate {
    /// Runs one slice of background work: few enough rows that other writers do not wait long.
    ///
    /// - Parameter body: gets the maximum number of rows, and returns the number that it processed.
    func writeSlice<R: Sendable>(
        _ upkeep: Upkeep, _ body: @escaping @Sendable (Connection, Int) throws -> (result: R, handled: Int),
    ) async throws(JobsError) -> R {
        try await perform { [self] in
            // Nil until the turn has come: waiting for it does not count.
            var start: Int64?
            var handled = 0
            func measured(_ db: Connection) throws -> R {
                start = SliceLedger.now()
                let slice = try body(db, slices.rows(upkeep))
                handled = slice.handled
                return slice.result
            }
            defer {
                if let start { slices.took(upkeep, nanoseconds: SliceLedger.now() - start, handled: handled) }
            }
            return switch engine {
            case .sqlite(let file): try file.write(isDurable: upkeep.isDurable, measured)
            case .postgres(let session): try session.write(isDurable: upkeep.isDurable) { try measured(Connection($0)) }
            }
        }
    }

    /// Maximum duration of a slice. It completes its current row and commits.
    static let sliceNanoseconds: Int64 = 15_000_000

    /// Processes elements in order, at least one, until the slice's time is up.
    ///
    /// - Returns: the number of processed elements.
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

    /// Pauses between two slices for a third of the last slice's time, so that a program which polls for the lock every
    /// 100 ms, like SQLite's own busy handler, finds it free within a second or two.
    ///
    /// - Parameter nanoseconds: how long the slice took.
    func breathe(after nanoseconds: Int64 = 0) async {
        // Cancelled tasks, too: other programs need the pause.
        await Pause.uncancelled(.nanoseconds(min(max(nanoseconds / 3, 4_000_000), 50_000_000)))
    }

    private static let prefix = "write-lock-microseconds-"

    /// Saves the longest slices, if they are longer than the saved ones. Called at the end of a round of upkeep.
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

    /// The longest time that a slice of each kind has ever held the write lock, in microseconds.
    public func longestSlices() async throws(JobsError) -> [Upkeep: Int64] {
        try await read { db in
            try Upkeep.allCases.reduce(into: [:]) { longest, upkeep in
                longest[upkeep] = try CacheProperty.value(Self.prefix + upkeep.rawValue, in: db).flatMap { Int64($0) }
            }
        }
    }
}
