internal import GRDB
internal import Glibc

/// The write-ahead log, and the pages in memory.
extension JobStore {
    private static let piece: Int64 = 64 << 10
    /// A log that has grown so long is cut to nothing, when nobody reads from it.
    private static let longestLog: Int64 = 32 << 20

    /// Moves the write-ahead log into the database once it has grown past `threshold` bytes. Readers and writers of
    /// other processes are not waited for; what can't be moved now is moved next time.
    ///
    /// - Parameter threshold: nil for 4 MiB, or less where as much took long.
    public func checkpoint(threshold: Int64? = nil) async throws(JobsError) {
        guard logSize > threshold ?? Int64(slices.rows(.checkpoint)) * Self.piece else { return }
        try await perform { [self] in
            try lockFile.withWriteLock {
                let start = SliceLedger.now()
                var pieces = 0
                defer { slices.took(.checkpoint, nanoseconds: SliceLedger.now() - start, handled: pieces) }
                try database.writeWithoutTransaction { db in
                    // The log is cut to nothing only when nobody reads from it; a busy answer is not an error.
                    let row = try Row.fetchOne(db, sql: "PRAGMA wal_checkpoint(PASSIVE)")
                    pieces = (row?["log"] ?? 0) * 4_096 / Int(Self.piece)
                    if logSize > Self.longestLog { _ = try Row.fetchOne(db, sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
                }
            }
        }
    }

    /// Gives up the pages of the database that are kept in memory: they are read again when they are wanted.
    ///
    /// Left alone they grow to 16 MB within hours, as one page after the other is used, and look like a leak.
    public func giveBackMemory() async throws(JobsError) {
        try await perform { [self] in
            try database.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA shrink_memory") }
        }
    }

    private var logSize: Int64 {
        var info = stat()
        return stat(path + "-wal", &info) == 0 ? Int64(info.st_size) : 0
    }
}
