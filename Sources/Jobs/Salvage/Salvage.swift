public import Core
internal import FoundationEssentials
internal import GRDB
internal import Glibc

/// Makes a new database from the readable rows of a broken one and the files in the cache.
///
/// The new database is created beside the old one, and replaces it when it is complete. It keeps all readable jobs,
/// items, results, sources, blacklist entries and pins. Items that were active in the old database are queued again.
public struct Salvage {
    public struct Report: Sendable, Encodable {
        public internal(set) var jobs = 0
        public internal(set) var items = 0
        /// Items that were active, or whose results are unreadable.
        public internal(set) var requeued = 0
        public internal(set) var blobs = 0
        /// Files in the old index that are missing or damaged.
        public internal(set) var lostFiles = 0
        /// Sentences about tables that could not be read completely.
        public internal(set) var unreadable: [String] = []
        /// Where the broken database is kept; empty if there was none.
        public internal(set) var kept = ""

        /// Whether all of the old database could be read.
        public var isComplete: Bool { unreadable.isEmpty }
    }

    /// The old index, to decide whether it belongs to the given cache.
    public struct Index {
        /// The cache's name.
        public let cache: String?
        /// Some of the index's blobs.
        public let blobs: [(hash: String, size: Int64)]
        /// Whether all of the index could be read.
        public let isComplete: Bool
    }

    private let path: String
    private let now: WallTime
    private let locksOld: Bool
    private var report = Report()

    /// - Parameters:
    ///   - mayBeMissing: whether to make a database from the files alone if there is none.
    ///   - locksOld: whether to lock out programs that have the old database open, and to tell them at the end to open the
    ///     new one. Without it the old file is only read.
    ///   - bind: returns the cache's name for the new database, or refuses the cache. Called once, before any file is
    ///     touched.
    ///   - files: returns every intact blob of the cache. Called once, after the queue was saved.
    public static func run(
        database path: String, now: WallTime, mayBeMissing: Bool = false, locksOld: Bool = true,
        bind: @escaping (Index) throws -> String? = { $0.cache },
        files: @escaping () throws -> [(hash: String, size: Int64)],
    ) throws(JobsError) -> Report {
        var salvage = Salvage(path: try DatabaseFile(path: path).name, now: now, locksOld: locksOld)
        do {
            return try salvage.run(mayBeMissing, Cache(bind: bind, files: files))
        } catch {
            throw JobsError(wrapping: error, path: path)
        }
    }

    private init(path: String, now: WallTime, locksOld: Bool) {
        self.path = path
        self.now = now
        self.locksOld = locksOld
    }

    /// The calls to the cache.
    typealias Cache = (bind: (Index) throws -> String?, files: () throws -> [(hash: String, size: Int64)])

    private mutating func run(_ mayBeMissing: Bool, _ cache: Cache) throws -> Report {
        let isThere = access(path, F_OK) == 0
        guard isThere || errno == ENOENT || errno == ENOTDIR else {
            throw failure("The database \(path) can't be looked up")
        }
        guard isThere || mayBeMissing else {
            throw JobsError(
                .cannotOpen,
                "There is no database at \(path). If it is lost, build one from the cache's files with: "
                    + "worker db rebuild --adopt")
        }
        let lock = try LockFile(path: path + ".lock")
        return try lock.withWriteLock {
            guard !lock.isAnyWorkerAlive else {
                throw JobsError(.busy, "A worker is running on \(path). Stop all workers first.")
            }
            var source = SalvageSource(path: path, locks: locksOld)
            let draft = DatabaseFile.rebuildDraft(of: path)
            DatabaseFile.removeRebuildDraft(draft)
            do {
                if isThere { try source.open() }
                report.unreadable = source.unreadable
                try fill(draft, from: source.database, cache)
                let wasLocked = source.isLocked
                if try !source.finish(), wasLocked {
                    report.unreadable.append(
                        "Programs that still have \(path) open can't be told that it was replaced. End them, or their rows are lost."
                    )
                }
            } catch {
                source.abandon()
                DatabaseFile.removeRebuildDraft(draft)
                throw error
            }
            do {
                try replace(with: draft, isThere: isThere)
            } catch {
                DatabaseFile.removeRebuildDraft(draft)
                if isThere { try unguard(source, after: error) }
                throw error
            }
            return report
        }
    }

    /// Lets the old database take jobs again, since the new one could not replace it.
    private func unguard(_ source: SalvageSource, after error: any Error) throws {
        do {
            try source.unguard()
        } catch let second {
            throw JobsError(
                .inputOutput,
                "\(error) The old database refuses new jobs until it is rebuilt, or until its triggers jobs_replaced and "
                    + "items_replaced are dropped, which failed just now: \(second)")
        }
    }

    private mutating func fill(
        _ draft: String, from old: DatabaseQueue?, _ cache: Cache,
    ) throws {
        PrivateFile.make(draft)
        let new = try DatabaseQueue(path: draft)
        try Schema.migrator.migrate(new)
        // If even the old schema is unreadable, only the cache's files are left.
        report = try new.writeWithoutTransaction { [now, report] db in
            // An incomplete draft is deleted, so it need not be synced before it is complete.
            try db.execute(sql: "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;")
            var load = SalvageLoad(old: old, new: Connection(db), now: now, report: report)
            try load.run(cache)
            try db.execute(sql: "PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE;")
            let complaints = try String.fetchAll(db, sql: "PRAGMA quick_check").filter { $0 != "ok" }
            guard complaints.isEmpty else {
                throw JobsError(.internalError, "The new database is damaged: \(complaints[0]).")
            }
            return load.report
        }
        try new.close()
        try sync(draft)
    }

    private mutating func replace(with draft: String, isThere: Bool) throws {
        guard isThere else {
            guard rename(draft, path) == 0 else {
                throw JobsError(.inputOutput, "\(path) can't be made: \(String(cString: strerror(errno))).")
            }
            return syncReplaced()
        }
        let stamp = Date(timeIntervalSince1970: Double(now.milliseconds) / 1_000)
            .formatted(Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted))
        report.kept = "\(path).broken-\(stamp)"
        // A further rebuild within the same second.
        for number in 2..<1_000 where access(report.kept, F_OK) == 0 {
            report.kept = "\(path).broken-\(stamp)-\(number)"
        }
        var moved: [String] = []
        do {
            for ending in ["-wal", "-shm"] {
                if rename(path + ending, report.kept + ending) == 0 {
                    moved.append(ending)
                } else if errno != ENOENT {
                    throw failure("\(path)\(ending) can't be put aside")
                }
            }
            // The old database first gets a second name, so that there is a database at every moment.
            unlink(report.kept)
            guard link(path, report.kept) == 0, rename(draft, path) == 0 else {
                let error = failure("\(path) can't be replaced")
                unlink(report.kept)  // A database with two names is refused.
                throw error
            }
        } catch {
            // The old database stays in use, and its log may have the only copy of its last rows.
            for ending in moved where rename(report.kept + ending, path + ending) != 0 {
                throw JobsError(
                    .inputOutput, "\(error) Its log is now \(report.kept)\(ending): rename it to \(path)\(ending).")
            }
            throw error
        }
        syncReplaced()
    }

    /// The new database has its name already, so a failure is told and does not undo the rebuild.
    private mutating func syncReplaced() {
        do {
            try sync(folder)
        } catch {
            report.unreadable.append("The new database has its name, but a power failure may undo that: \(error).")
        }
    }

    private func failure(_ what: String) -> JobsError {
        JobsError(.inputOutput, "\(what): \(String(cString: strerror(errno))).")
    }

    private var folder: String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private func sync(_ name: String) throws {
        let file = Glibc.open(name, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            throw JobsError(.inputOutput, "\(name) can't be opened: \(String(cString: strerror(errno))).")
        }
        defer { close(file) }
        guard fsync(file) == 0 else {
            throw JobsError(.inputOutput, "\(name) can't be synced: \(String(cString: strerror(errno))).")
        }
    }
}
