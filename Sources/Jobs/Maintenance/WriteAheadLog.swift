public import Core
internal import FoundationEssentials
internal import GRDB
internal import Glibc
internal import Synchronization

/// The write-ahead log as it stands.
public struct LogState: Hashable, Sendable {
    public let bytes: Int64
    /// Since when a reader keeps the log from being cut; nil where none does.
    public let heldSince: WallTime?
    /// `process 1234 (sqlite3)`; empty where it isn't known.
    public let holders: String
}

/// The write-ahead log, and the pages in memory.
///
/// A program that leaves a read transaction open keeps every page that was written since from being moved into the
/// database. Nothing waits for it: the log grows meanwhile, and is cut when the reader is gone.
extension Maintenance {
    private static let piece: Int64 = 64 << 10
    /// A log that has grown so long is truncated once no reader uses it.
    private static let longestLog: Int64 = 32 << 20
    /// A reader that has kept the log for so long is told of, in milliseconds.
    private static let longRead: Int64 = 5_000
    private static let holderProperty = "log-holder"

    /// Moves the write-ahead log into the database once it has grown past `threshold` bytes. Readers and writers of
    /// other processes are not waited for; pages that can't be moved now are moved next time.
    ///
    /// - Parameter threshold: nil for 4 MiB, or less where as much took long.
    public func checkpoint(threshold: Int64? = nil) async throws(JobsError) {
        guard logSize > threshold ?? Int64(gate.slices.rows(.checkpoint)) * Self.piece else {
            return try await tellOfReader()
        }
        try await gate.perform { [self] in
            try gate.atMyTurn {
                let start = SliceLedger.now()
                var pieces = 0
                defer { gate.slices.took(.checkpoint, nanoseconds: SliceLedger.now() - start, handled: pieces) }
                try gate.database.writeWithoutTransaction { db in
                    // Passive: it moves what no reader needs, and waits for none.
                    let row = try Row.fetchOne(db, sql: "PRAGMA wal_checkpoint(PASSIVE)")
                    let (pages, moved) = (row?["log"] as Int? ?? 0, row?["checkpointed"] as Int? ?? 0)
                    pieces = pages * 4_096 / Int(Self.piece)
                    let isHeld = moved < pages
                    gate.logHeldSince.withLock { $0 = isHeld ? $0 ?? gate.now() : nil }
                    // Within atMyTurn SQLite doesn't wait, so a reader that comes now makes this a refusal and no more.
                    if !isHeld, logSize > Self.longestLog {
                        _ = try Row.fetchOne(db, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
                    }
                }
            }
        }
        try await tellOfReader()
    }

    /// Writes down that a reader keeps the log, for status and metrics, and that it is gone.
    private func tellOfReader() async throws(JobsError) {
        let since = gate.logHeldSince.withLock { $0 }.flatMap { gate.now() - $0 >= Self.longRead ? $0 : nil }
        let isKnown = try await gate.read { db in try CacheProperty.value(Self.holderProperty, in: db) != nil }
        guard isKnown || since != nil else { return }
        let file = gate.file
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

    /// The log's size, and the reader that keeps it from being cut, as the last worker wrote it down.
    public func logState() async throws(JobsError) -> LogState {
        let text = try await gate.read { db in try CacheProperty.value(Self.holderProperty, in: db) }
        // A note of another version says nothing.
        let holder = text.flatMap { try? JSONDecoder().decode(Holder.self, from: Data($0.utf8)) }
        return LogState(bytes: logSize, heldSince: holder?.since, holders: holder?.processes ?? "")
    }

    /// Gives up the pages of the database that are kept in memory: they are read again when they are wanted.
    ///
    /// Left alone they grow to 16 MB within hours, as one page after the other is used, and look like a leak.
    public func giveBackMemory() async throws(JobsError) {
        try await gate.perform { [self] in
            try gate.database.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA shrink_memory") }
        }
    }

    private var logSize: Int64 {
        var info = stat()
        return stat(gate.file.name + "-wal", &info) == 0 ? Int64(info.st_size) : 0
    }
}
