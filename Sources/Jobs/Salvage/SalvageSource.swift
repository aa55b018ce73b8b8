internal import GRDB
internal import Glibc

/// Reads a broken database: the file itself, locked against other writers, or a padded copy if the file is too short to
/// be opened.
struct SalvageSource {
    let path: String
    /// Whether to lock the old file against writers. This changes the file: SQLite opens its log, and triggers then tell
    /// other programs to open the new database.
    private let locks: Bool
    /// A copy beside the old database; removed at the end.
    private let copy: String
    private(set) var database: DatabaseQueue?
    private(set) var unreadable: [String] = []
    /// Whether other programs are locked out from writing until `finish()`.
    private(set) var isLocked = false

    init(path: String, locks: Bool) {
        self.path = path
        self.locks = locks
        copy = path + ".rebuilding-copy"
    }

    /// Opens the database without changing it.
    ///
    /// - Throws: `tooNew`, `tooOld`; `busy` if another program is writing to it.
    mutating func open() throws {
        removeCopy()
        // A file that this user may not open is not damaged.
        for name in [path, path + "-wal"] {
            let file = Glibc.open(name, O_RDONLY | O_CLOEXEC)
            guard file >= 0 || (errno == ENOENT && name != path) else { throw Self.failure("\(name) can't be opened") }
            if file >= 0 { Glibc.close(file) }
        }
        let missing = try padded()
        if missing == nil { try refuseOtherVersion(SQLiteFile.readOnlyName(of: path)) }
        if let missing {
            unreadable.append("\(path) is \(missing) bytes too short; the rows in the missing part are lost.")
            database = try lenient(copy, isReadOnly: false)
        } else {
            database = try locks ? locked() ?? unlocked() : unlocked()
        }
        if !isLocked, database != nil {
            unreadable.append(
                "Rows that other programs added to \(path) during the rebuild are not in the new database.")
        }
        if database == nil { unreadable.append("Nothing of \(path) can be read.") }
    }

    /// Releases the old database. If it was locked, programs that still have it open get an error that tells them to
    /// open the new one: otherwise their next writes would be lost.
    ///
    /// - Returns: whether they get this error.
    mutating func finish() throws -> Bool {
        var isTold = false
        if isLocked {
            database?.writeWithoutTransaction { db in
                do {
                    for table in Self.guarded { try db.execute(sql: Self.refusal(of: table)) }
                    try db.execute(sql: "COMMIT")
                    isTold = true
                } catch {
                    // Best effort: closing the connection rolls back as well.
                    try? db.execute(sql: "ROLLBACK")
                }
            }
        }
        try close()
        return isTold
    }

    /// Releases the old database unchanged, since making the new one failed.
    mutating func abandon() {
        // Best effort: a connection that fails to roll back does so when it is closed.
        if isLocked { try? database?.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") } }
        try? close()
        removeCopy()
    }

    /// Undoes `finish()`, if the new database could not replace the old one.
    func unguard() throws {
        guard let database = try queue(path) else { throw JobsError(.cannotOpen, "\(path) can't be opened.") }
        try database.writeWithoutTransaction { db in
            for table in Self.guarded { try db.execute(sql: "DROP TRIGGER IF EXISTS \(table)_replaced") }
        }
        try database.close()
    }

    private mutating func close() throws {
        isLocked = false
        try database?.close()
        database = nil
        removeCopy()
    }

    func removeCopy() { for ending in ["", "-wal", "-shm", "-journal"] { unlink(copy + ending) } }

    // MARK: - Opening

    private static let guarded = ["jobs", "items"]

    private static func refusal(of table: String) -> String {
        """
        DROP TRIGGER IF EXISTS \(table)_replaced;
        CREATE TRIGGER \(table)_replaced BEFORE INSERT ON \(table) BEGIN
            SELECT RAISE(ABORT, 'this database was replaced; open it again');
        END;
        """
    }

    /// Opens the file in a transaction, so that no program adds rows that the new database would miss.
    private mutating func locked() throws -> DatabaseQueue? {
        guard let database = try queue(path) else { return nil }
        do {
            try database.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
            isLocked = true
            return database
        } catch let error as DatabaseError where Self.isBusy(error) {
            throw JobsError(.busy, "Another program is writing to \(path). End it first.")
        } catch {
            // Best effort: the connection is not used again.
            try? database.close()
            return nil
        }
    }

    /// Opens the file with its log if that is readable, else without.
    private mutating func unlocked() throws -> DatabaseQueue? {
        let names = [SQLiteFile.readOnlyName(of: path), SQLiteFile.immutableName(of: path)]
        if let database = try lenient(names[0]) { return database }
        guard names[0] != names[1], let database = try lenient(names[1]) else { return nil }
        unreadable.append("The log \(path)-wal can't be read; its last changes are lost.")
        return database
    }

    /// Opens the file; if its schema is partly unreadable, only with the tables before the damage.
    private mutating func lenient(_ name: String, isReadOnly: Bool = true) throws -> DatabaseQueue? {
        if let database = try queue(name, isReadOnly: isReadOnly) { return database }
        guard let database = try queue(name, isReadOnly: isReadOnly, isLenient: true) else { return nil }
        unreadable.append("Not all of the schema of \(path) can be read.")
        return database
    }

    /// - Returns: nil if no part of it can be read.
    /// - Throws: `busy` if another program keeps all others out, so that nothing is known about its state.
    private func queue(
        _ name: String, isReadOnly: Bool = false, isLenient: Bool = false,
    ) throws -> DatabaseQueue? {
        var configuration = Configuration()
        configuration.readonly = isReadOnly
        configuration.busyMode = .timeout(10)
        // The transaction that locks the file outlives the statements that open it.
        configuration.allowsUnsafeTransactions = true
        configuration.prepareDatabase { db in
            try db.execute(sql: "PRAGMA wal_autocheckpoint = 0")
            // Checks the cells of each page as it is read, so that damage is an error before the page is used or changed:
            // https://www.sqlite.org/security.html
            try db.execute(sql: "PRAGMA cell_size_check = ON")
            if isLenient { try db.execute(sql: "PRAGMA writable_schema = ON") }
        }
        let look = "SELECT 1 FROM \(isLenient ? "jobs" : "sqlite_schema") LIMIT 1"
        do {
            let database = try DatabaseQueue(path: name, configuration: configuration)
            for isFirst in isLenient ? [true, false] : [false] {
                do {
                    _ = try database.unsafeRead { try Int.fetchOne($0, sql: look) }
                    return database
                } catch let error as DatabaseError where isFirst && !Self.isBusy(error) {
                    // A lenient connection fails once, at the damage, and then knows the tables before it.
                }
            }
        } catch let error as DatabaseError where Self.isBusy(error) {
            throw JobsError(.busy, "Another program keeps all others out of \(path). End it first.")
        } catch {
            // The caller reports in its own words that it can't be read.
        }
        return nil
    }

    private static func isBusy(_ error: DatabaseError) -> Bool {
        [.SQLITE_BUSY, .SQLITE_LOCKED].contains(error.resultCode)
    }

    private func refuseOtherVersion(_ name: String) throws {
        guard let database = try queue(name, isReadOnly: true) else { return }
        // Best effort: the database was only read, so a failed close loses no data.
        defer { try? database.close() }
        // Best effort: if the migrations are unreadable, the version is unknown, and all readable rows are taken.
        let applied = try? database.unsafeRead { db in
            try String.fetchSet(db, sql: "SELECT identifier FROM grdb_migrations")
        }
        try Schema.refuseUnknown(applied ?? [], path: self.path)
    }

    // MARK: - A file that is too short

    /// Copies a file that is too short, and pads the copy with zeros to the size in its first page.
    ///
    /// - Returns: the number of missing bytes; nil if none are missing, and then there is no copy.
    private func padded() throws -> Int64? {
        guard let header = Self.header(of: path) else { return nil }
        let size = header.size
        var wanted = (size + header.page - 1) / header.page * header.page
        if header.pages > 0 { wanted = max(wanted, header.pages * header.page) }
        guard try wanted > size && !isInLog(header.pages) else { return nil }
        try Self.copyFile(path, to: copy)
        // If there is no space for all zeros, it pads only the last page.
        if truncate(copy, off_t(wanted)) != 0 {
            truncate(copy, off_t((size + header.page - 1) / header.page * header.page))
        }
        if access(path + "-wal", F_OK) == 0 { try Self.copyFile(path + "-wal", to: copy + "-wal") }
        do {
            try refuseOtherVersion(copy)
        } catch {
            removeCopy()
            throw error
        }
        return wanted - size
    }

    /// Whether the log may contain the missing pages, since new pages are first written there.
    private func isInLog(_ pages: Int64) throws -> Bool {
        var info = stat()
        guard stat(path + "-wal", &info) == 0, info.st_size > 0, let database = try queue(path, isReadOnly: true)
        else {
            return false
        }
        // Best effort: the database was only opened for reading, so a failed close loses no data.
        defer { try? database.close() }
        return true
    }

    private static func header(of path: String) -> (size: Int64, page: Int64, pages: Int64)? {
        let file = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { Glibc.close(file) }
        var info = stat()
        var bytes = [UInt8](repeating: 0, count: 100)
        guard fstat(file, &info) == 0, pread(file, &bytes, 100, 0) == 100,
            bytes.starts(with: Array("SQLite format 3\0".utf8))
        else { return nil }
        func number(_ range: Range<Int>) -> Int64 { bytes[range].reduce(0) { $0 << 8 | Int64($1) } }
        let page = number(16..<18) == 1 ? 65_536 : number(16..<18)
        guard page >= 512, page & (page - 1) == 0 else { return nil }
        // The number of pages is valid only if the last program that changed the file wrote it (section 1.3.7 of
        // https://www.sqlite.org/fileformat.html).
        return (Int64(info.st_size), page, number(24..<28) == number(92..<96) ? number(28..<32) : 0)
    }

    private static func copyFile(_ path: String, to copy: String) throws {
        let source = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard source >= 0 else { throw failure("\(path) can't be read") }
        defer { Glibc.close(source) }
        let target = Glibc.open(copy, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard target >= 0 else { throw failure("\(copy) can't be made") }
        defer { Glibc.close(target) }
        while true {
            let count = sendfile(target, source, nil, 1 << 24)
            if count == 0 { return }
            if count < 0, errno != EINTR { throw failure("\(path) can't be copied") }
        }
    }

    private static func failure(_ what: String) -> JobsError {
        let code = errno
        return JobsError(code == ENOSPC ? .diskFull : .inputOutput, "\(what): \(String(cString: strerror(code))).")
    }
}
