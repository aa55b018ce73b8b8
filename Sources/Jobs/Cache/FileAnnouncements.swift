internal import Core
internal import Dispatch

// Programs of one machine lock the files that they are about to record, so that no other program deletes them. Machines
// that share a bucket, with PostgreSQL, have no common locks. Their programs announce such files in the database:
//
// - A worker announces the files of a group before it stores them. The transaction that records the group takes the
//   announcements back, and leaves out a result whose announcement is gone.
// - A program that deletes files announces that, too, but for no file that a worker has announced. A worker waits for
//   the end of such a removal before it stores the file.
//
// Announcements of dead programs run out. With SQLite none of these functions does anything.
extension CacheEviction {
    /// Whether machines without common locks may use the cache.
    var isShared: Bool { gate.sqlite == nil }

    /// How long an announced file is not deleted, in milliseconds. Storing a group takes a few seconds; a group that
    /// is sent again is announced again.
    private static let storingLifetime: Int64 = 600_000
    /// How long an announced removal keeps workers from storing the file, in milliseconds. A removal takes two tries of
    /// eight seconds at most.
    private static let removingLifetime: Int64 = 60_000

    /// Announces files that a worker is about to store or to hold. Returns once no program is deleting one of them.
    ///
    /// - Parameter owner: the same number for all calls of one publisher.
    public func announce(_ hashes: [String], by owner: Int64) async throws(JobsError) {
        guard isShared, !hashes.isEmpty else { return }
        let sorted = Set(hashes).sorted()
        while !(try await tryToAnnounce(sorted, by: owner)) {
            // A cancelled task, too, waits.
            await withUnsafeContinuation { continuation in
                gate.queue.asyncAfter(deadline: .now() + .milliseconds(50)) { continuation.resume() }
            }
        }
    }

    private func tryToAnnounce(_ hashes: [String], by owner: Int64) async throws(JobsError) -> Bool {
        let now = gate.now()
        // A server that crashes forgets announcements, and each publisher notices that when it records its group.
        return try await gate.write(isDurable: false) { db in
            let isRemoved = try RowStatement("SELECT 1 FROM removed_files WHERE hash = ? AND until > ?", in: db)
                .firstEach(hashes, { ($0, now) }, read: { _ in true })
            guard !isRemoved.contains(true) else { return false }
            let insert = try RowStatement(
                """
                INSERT INTO announced_files (hash, owner, until) VALUES (?, ?, ?)
                ON CONFLICT (hash, owner) DO UPDATE SET until = excluded.until
                """, in: db)
            try insert.runEach(hashes) { ($0, owner, now + Self.storingLifetime) }
            return true
        }
    }

    /// Takes all announcements of a publisher back that are left when its group has been settled.
    public func takeBackAnnouncements(of owner: Int64) async throws(JobsError) {
        guard isShared else { return }
        try await gate.write(isDurable: false) { db in
            try db.run("DELETE FROM announced_files WHERE owner = ?", [owner])
        }
    }

    /// Takes announcements back, in the transaction that records the files.
    ///
    /// - Returns: the files that were announced until now.
    static func takeBack(_ hashes: Set<String>, of owner: Int64, in statements: RowStatements) throws -> Set<String> {
        let sorted = hashes.sorted()
        let isThere = try statements("DELETE FROM announced_files WHERE hash = ? AND owner = ?")
            .changeEach(sorted) { ($0, owner) }
        return Set(zip(sorted, isThere).filter(\.1).map(\.0))
    }

    // MARK: - Removals

    /// The files among these that a worker has announced: they may not be deleted.
    static func announced(_ hashes: [String], now: WallTime, in db: Connection) throws -> Set<String> {
        guard db.sqlite == nil, !hashes.isEmpty else { return [] }
        try db.run("DELETE FROM announced_files WHERE until <= ?", [now.milliseconds])
        let isAnnounced = try RowStatement("SELECT 1 FROM announced_files WHERE hash = ? LIMIT 1", in: db)
            .firstEach(hashes, { $0 }, read: { _ in true })
        return Set(zip(hashes, isAnnounced).filter { $1 == true }.map(\.0))
    }

    /// Announces that this program deletes files, in a transaction that has found none of them announced.
    static func announceRemoval(of hashes: [String], now: WallTime, in db: Connection) throws {
        guard db.sqlite == nil else { return }
        let insert = try RowStatement(
            """
            INSERT INTO removed_files (hash, until) VALUES (?, ?)
            ON CONFLICT (hash) DO UPDATE SET until = excluded.until
            """, in: db)
        try insert.runEach(hashes) { ($0, now + removingLifetime) }
    }

    /// Ends removals.
    ///
    /// - Returns: the files whose announcements had run out, so that a worker may have stored them before they were
    ///   deleted.
    static func endRemoval(of hashes: [String], now: WallTime, in db: Connection) throws -> [String] {
        guard db.sqlite == nil, !hashes.isEmpty else { return [] }
        let isInTime = try RowStatement("DELETE FROM removed_files WHERE hash = ? AND until > ?", in: db)
            .changeEach(hashes) { ($0, now) }
        try db.run("DELETE FROM removed_files WHERE until <= ?", [now.milliseconds])
        return zip(hashes, isInTime).filter { !$1 }.map(\.0)
    }

    /// The files among these that the index does not have and that no worker has announced; their removal is announced.
    public func removable(unknown hashes: [String]) async throws(JobsError) -> [String] {
        guard isShared else { return try await unknown(blobs: hashes) }
        let now = gate.now()
        return try await gate.write { db in
            let isKnown = try CacheIndex.areKnown(blobs: hashes, in: db)
            let unknown = zip(hashes, isKnown).filter { !$1 }.map(\.0)
            let announced = try Self.announced(unknown, now: now, in: db)
            let removable = unknown.filter { !announced.contains($0) }
            try Self.announceRemoval(of: removable, now: now, in: db)
            return removable
        }
    }

    /// Ends the removal of files that the index does not have.
    public func endRemoval(of hashes: [String]) async throws(JobsError) {
        guard isShared, !hashes.isEmpty else { return }
        let now = gate.now()
        let reading = gate.reading
        try await gate.write { db in
            try Self.forgetLate(try Self.endRemoval(of: hashes, now: now, in: db), at: try reading.time(in: db), in: db)
        }
    }

    /// Lists files as lost that were deleted after a worker may have stored them.
    static func forgetLate(_ hashes: [String], at time: SteadyTime, in db: Connection) throws {
        for hash in hashes where try db.exists("SELECT 1 FROM blobs WHERE hash = ?", [hash]) {
            while try !forget(blob: hash, lostAt: time, in: db) {}
        }
    }
}
