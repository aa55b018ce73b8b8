internal import GRDB

/// How long upkeep has held the write lock, for the metrics.
extension JobStore {
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
