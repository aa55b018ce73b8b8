internal import GRDB

/// Upkeep: a slice at a time under the write lock, and how long each has held it, for the metrics.
extension JobStore {
    /// A slice of what is done in the background: so many rows that others needn't wait for long.
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

    /// How long one slice goes on; what it is at by then it ends, and commits.
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

    private static let prefix = "write-lock-microseconds-"

    /// Writes down the longest slices, where they are longer than what is written there. Called when a round of upkeep ends.
    public func noteSlices() async throws(JobsError) {
        let known = try await longestSlices()
        let longer = slices.longest.filter { ($0.value / 1_000) > (known[$0.key] ?? 0) }
        guard !longer.isEmpty else { return }
        try await write { db in
            for (upkeep, nanoseconds) in longer {
                try Self.setCacheProperty(Self.prefix + upkeep.rawValue, to: "\(nanoseconds / 1_000)", in: db)
            }
        }
    }

    /// The longest that a slice of each kind has ever held the write lock, in microseconds.
    public func longestSlices() async throws(JobsError) -> [Upkeep: Int64] {
        try await read { db in
            try Upkeep.allCases.reduce(into: [:]) { longest, upkeep in
                longest[upkeep] = try Self.cacheProperty(Self.prefix + upkeep.rawValue, in: db).flatMap { Int64($0) }
            }
        }
    }
}
