internal import Core

/// The counters that all workers of a database share.
///
/// A worker counts in memory and adds what is new every few seconds; a worker that is killed loses the counts of those
/// seconds, never items. Counters only grow, so that Prometheus computes rates of them across restarts of workers.
public struct ActivityBook: Sendable {
    let gate: DatabaseGate

    /// The length of a slot, in seconds.
    public static let slotSeconds: Int64 = 30
    /// How long slots are kept, in seconds.
    public static let kept: Int64 = 3_600

    /// Rows that are read. Workers write some 60 for each slot; SQL may write any number.
    private static let maxRows = 20_000

    /// Adds to the counters and to the present slot, and removes slots of more than an hour ago.
    public func add(_ counts: ActivityCounts) async throws(JobsError) {
        guard !counts.isEmpty else { return }
        let second = gate.now().milliseconds / 1_000
        let slot = second - second % Self.slotSeconds
        // These counts describe the past: a power failure may take the last of them.
        try await gate.write(isDurable: false) { db in
            for (key, value) in counts.values {
                try db.run(
                    """
                    INSERT INTO counters (name, label, value) VALUES (?1, ?2, ?3)
                    ON CONFLICT (name, label) DO UPDATE SET value = min(counters.value + ?3, \(ActivityCounts.most))
                    """, [key.counter.rawValue, key.label, value])
                try db.run(
                    """
                    INSERT INTO activity (slot, name, label, value) VALUES (?1, ?2, ?3, ?4)
                    ON CONFLICT (slot, name, label) DO UPDATE SET value = min(activity.value + ?4, \(ActivityCounts.most))
                    """, [slot, key.counter.rawValue, key.label, value])
            }
            // Also removes slots in the future, which were written before the clock was set back.
            try db.run("DELETE FROM activity WHERE slot < ? OR slot > ?", [slot - Self.kept, slot + Self.kept])
        }
    }

    /// The counts since the database was made.
    public func counts() async throws(JobsError) -> ActivityCounts {
        try await gate.read { db in
            var counts = ActivityCounts()
            for row in try db.rows("SELECT name, label, value FROM counters LIMIT \(Self.maxRows)") { counts.add(row) }
            return counts
        }
    }

    /// The slots of the last hour in which something was counted, from the oldest to the newest.
    public func lastHour() async throws(JobsError) -> [ActivitySlot] {
        let second = gate.now().milliseconds / 1_000
        return try await gate.read { db in
            var slots: [Int64: ActivityCounts] = [:]
            let rows = try db.rows(
                "SELECT slot, name, label, value FROM activity WHERE slot > ? AND slot <= ? ORDER BY slot LIMIT \(Self.maxRows)",
                [second - Self.kept, second])
            for row in rows { slots[row["slot"], default: ActivityCounts()].add(row) }
            return slots.sorted { $0.key < $1.key }.map { ActivitySlot(start: $0.key, counts: $0.value) }
        }
    }
}

extension ActivityCounts {
    /// Adds a row of either table. Names that a later version has written are ignored.
    fileprivate mutating func add(_ row: Row) {
        guard let counter = row.text("name").flatMap(Counter.init(rawValue:)) else { return }
        add(row.number("value") ?? 0, to: counter, row.text("label") ?? "")
    }
}
