public import Core
internal import FoundationEssentials
internal import Glibc
internal import Synchronization

/// The state of the write-ahead log.
public struct LogState: Hashable, Sendable {
    public let bytes: Int64
    /// Since when a reader prevents the log from being truncated; nil if none does.
    public let heldSince: WallTime?
    /// `process 1234 (sqlite3)`; empty if unknown.
    public let holders: String
}

/// Maintains the write-ahead log, and SQLite's page cache.
///
/// If a program leaves a read transaction open, the pages written since then can't be moved into the database. No
/// program waits for it: the log grows meanwhile, and is truncated when the reader has finished.
extension Maintenance {
    private static let piece: Int64 = 64 << 10
    /// A longer log is truncated once no reader uses it.
    private static let longestLog: Int64 = 32 << 20
    /// A reader that has blocked the log for this long is reported, in milliseconds.
    private static let longRead: Int64 = 5_000
    private static let holderProperty = "log-holder"

    /// Moves the write-ahead log into the database if it is larger than `threshold` bytes. It does not wait for readers
    /// and writers of other processes; the next call moves the pages that can't be moved now.
    ///
    /// - Parameter threshold: nil for 4 MiB, or less if moving that much took too long.
    public func checkpoint(threshold: Int64? = nil) async throws(JobsError) {
        // PostgreSQL's server looks after its own log.
        guard let file = gate.sqlite else { return }
        guard logSize > threshold ?? Int64(gate.slices.rows(.checkpoint)) * Self.piece else {
            return try await tellOfReader()
        }
        try await gate.perform { [self] in
            try file.atMyTurn {
                let start = SliceLedger.now()
                var pieces = 0
                defer { gate.slices.took(.checkpoint, nanoseconds: SliceLedger.now() - start, handled: pieces) }
                try file.withoutTransaction { db in
                    // Passive: it moves the pages that no reader needs, and does not wait.
                    let row = try db.row("PRAGMA wal_checkpoint(PASSIVE)")
                    let (pages, moved) = (row?["log"] as Int? ?? 0, row?["checkpointed"] as Int? ?? 0)
                    pieces = pages * 4_096 / Int(Self.piece)
                    let isHeld = moved < pages
                    file.logHeldSince.withLock { since in since = isHeld ? since ?? gate.now() : nil }
                    // Inside atMyTurn SQLite does not wait, so if a reader starts now, the truncation is only refused.
                    if !isHeld, logSize > Self.longestLog {
                        _ = try db.row("PRAGMA wal_checkpoint(TRUNCATE)")
                    }
                }
            }
        }
        try await tellOfReader()
    }

    /// Whether a reader kept pages in the log at the last call of ``checkpoint(threshold:)``.
    public var isLogHeld: Bool { gate.sqlite?.logHeldSince.withLock { $0 != nil } ?? false }

    /// Records that a reader blocks the log, for status and metrics, and removes the record when the reader has
    /// finished.
    private func tellOfReader() async throws(JobsError) {
        guard let sqlite = gate.sqlite else { return }
        let since = sqlite.logHeldSince.withLock { $0 }.flatMap { gate.now() - $0 >= Self.longRead ? $0 : nil }
        let isKnown = try await gate.read { db in try CacheProperty.value(Self.holderProperty, in: db) != nil }
        guard isKnown || since != nil else { return }
        let file = sqlite.file
        _ = try await gate.writeIfFree { db in
            guard let since else {
                try CacheProperty.set(Self.holderProperty, to: nil, in: db)
                return
            }
            let holders = LockHolders.processes(
                .bytes, on: file.name + "-shm", bytes: LockHolders.readerBytes)
            let note = Holder(since: since, processes: LockHolders.names(holders))
            try CacheProperty.set(
                Self.holderProperty, to: String(decoding: try JSONEncoder().encode(note), as: UTF8.self), in: db)
        }
    }

    private struct Holder: Codable {
        let since: WallTime
        let processes: String
    }

    /// The log's size, and the reader that prevents its truncation, as the last worker recorded it.
    public func logState() async throws(JobsError) -> LogState {
        let text = try await gate.read { db in try CacheProperty.value(Self.holderProperty, in: db) }
        // Best effort: a record of another version counts as none.
        let holder = text.flatMap { try? JSONDecoder().decode(Holder.self, from: Data($0.utf8)) }
        return LogState(bytes: logSize, heldSince: holder?.since, holders: holder?.processes ?? "")
    }

    /// Releases SQLite's page cache: pages are read again when they are needed.
    ///
    /// Otherwise it grows to 16 MB within hours, as more and more pages are used, which looks like a leak.
    public func giveBackMemory() async throws(JobsError) {
        guard let file = gate.sqlite else { return }
        _ = try await gate.perform {
            try file.withoutTransaction { db in try db.run("PRAGMA shrink_memory") }
        }
    }

    private var logSize: Int64 {
        var info = stat()
        guard let file = gate.sqlite?.file else { return 0 }
        return stat(file.name + "-wal", &info) == 0 ? Int64(info.st_size) : 0
    }
}
