internal import GRDB
internal import Synchronization

extension JobStore {
    /// Before a transaction: whether its commit is on the disk when it returns, or may be undone by a power cut until the
    /// next that is.
    ///
    /// Set before, and not put back after: what can't be set then fails the transaction that needs it, instead of relaxing
    /// those that come later without a word, and a commit that was made is not reported as failed.
    func setDurability(_ isDurable: Bool, of db: Database) throws {
        guard syncs, isRelaxed.load(ordering: .relaxed) == isDurable else { return }
        // Whatever goes wrong from here on, nobody relies on it any more.
        isRelaxed.store(true, ordering: .relaxed)
        let level: Int32 = isDurable ? Self.full : Self.normal
        try db.execute(sql: "PRAGMA synchronous = \(level)")
        guard try Int32.fetchOne(db, sql: "PRAGMA synchronous") == level else {
            throw JobsError(.internalError, "SQLite doesn't take on how commits of \(path) are synced.")
        }
        isRelaxed.store(!isDurable, ordering: .relaxed)
    }

    // https://sqlite.org/pragma.html#pragma_synchronous
    private static let normal: Int32 = 1
    private static let full: Int32 = 2
}
