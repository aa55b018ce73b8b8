internal import GRDB
internal import Glibc

/// A failure of the database or the queue.
public struct JobsError: Error, Sendable, CustomStringConvertible {
    public struct Code: Hashable, Sendable {
        private let name: String
        private init(_ name: String) { self.name = name }

        /// The database can't be opened or created.
        public static let cannotOpen = Code("cannotOpen")
        /// SQLite found the file damaged, or it is no database: the worker makes no further claim.
        public static let corrupt = Code("corrupt")
        /// The disk is full.
        public static let diskFull = Code("diskFull")
        /// The disk failed to read or write.
        public static let inputOutput = Code("inputOutput")
        /// Another program held the lock of the database too long.
        public static let busy = Code("busy")
        /// The file was deleted or replaced while it was open.
        public static let replaced = Code("replaced")
        /// The file was made by a newer version of this program.
        public static let tooNew = Code("tooNew")
        /// The file was made by a version that was never released, and can't be upgraded.
        public static let tooOld = Code("tooOld")
        /// The schema or this program refuses the value; the message says which values are valid.
        public static let refused = Code("refused")
        /// There is no such job, item or entry.
        public static let notFound = Code("notFound")
        /// A fault in this program.
        public static let internalError = Code("internalError")
    }

    public let code: Code
    public let message: String
    /// The change of an item that the database refused; nil for other errors.
    var refused: ItemRefusals.Change?

    /// Whether the same call may succeed later: the disk or another program caused the error, and the database is
    /// intact.
    public var isTransient: Bool { [.busy, .diskFull, .inputOutput, .cannotOpen].contains(code) }

    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { message }

    /// Advice for a damaged database.
    static let advice =
        "Stop all workers; then put a copy made by 'worker db backup' in its place, or run 'worker db rebuild', which saves "
        + "what can be read."

    /// Translates any error of a call to the database.
    init(wrapping error: any Error, path: String) {
        if let error = error as? JobsError {
            self = error
            return
        }
        if let error = error as? PostgresError {
            self.init(error, path: path)
            return
        }
        guard let error = error as? DatabaseError else {
            self.init(.internalError, "The database \(path) failed: \(error).")
            return
        }
        let detail = error.message ?? "no message"
        switch error.resultCode {
        case .SQLITE_CORRUPT where !Self.canBeRead(path), .SQLITE_NOTADB where !Self.canBeRead(path):
            self.init(
                .inputOutput,
                "The disk of the database \(path) failed: the file can't be read (SQLite says: \(detail)).")
        case .SQLITE_CORRUPT, .SQLITE_NOTADB:
            self.init(.corrupt, "The database \(path) is damaged or not a database: \(detail). \(Self.advice)")
        case .SQLITE_FULL:
            self.init(.diskFull, "The disk of the database \(path) is full: \(detail).")
        case .SQLITE_IOERR where Self.isForWantOfRoom(error, path):
            self.init(.diskFull, "The disk of the database \(path) is full: \(detail).")
        case .SQLITE_CANTOPEN where access(path, W_OK) == 0 && Self.isFull(path):
            self.init(.diskFull, "The disk of the database \(path) is full: \(detail).")
        case .SQLITE_IOERR:
            self.init(.inputOutput, "The disk of the database \(path) failed: \(detail).")
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            self.init(.busy, "The database \(path) stayed locked by another program: \(detail).")
        case .SQLITE_CANTOPEN, .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH:
            self.init(.cannotOpen, "The database \(path) can't be opened for writing: \(detail).")
        case .SQLITE_CONSTRAINT:
            // The name of a CHECK is a sentence; SQLite's own words stand before it.
            self.init(.refused, String(detail.trimmingPrefix("CHECK constraint failed: ")))
        default:
            self.init(
                .internalError,
                "SQLite reported error \(error.resultCode.rawValue) for the database \(path): \(detail).")
        }
    }

    /// Whether the disk can still read the file. If not, the file's state is unknown, and it must not be rebuilt.
    private static func canBeRead(_ path: String) -> Bool {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return errno == ENOENT || errno == EACCES }
        // The descriptor stays open, since closing it would end SQLite's locks on the file in this process (fcntl(2)).
        // This happens only once, since the worker stops using a damaged database.
        var info = stat()
        guard fstat(file, &info) == 0 else { return false }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var offset: off_t = 0
        // At most the first 64 MiB: a failed disk cannot read these either.
        while offset < min(off_t(info.st_size), 64 << 20) {
            let count = pread(file, &buffer, buffer.count, offset)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return count == 0 }
            offset += off_t(count)
        }
        return true
    }

    /// SQLite reports a full disk if it fails to write the database, but only an I/O error if it fails to create the
    /// shared memory.
    private static func isForWantOfRoom(_ error: DatabaseError, _ path: String) -> Bool {
        let codes: [ResultCode] = [
            .SQLITE_IOERR_SHMOPEN, .SQLITE_IOERR_SHMSIZE, .SQLITE_IOERR_SHMMAP, .SQLITE_IOERR_WRITE,
            .SQLITE_IOERR_TRUNCATE, .SQLITE_IOERR_FSYNC,
        ]
        return codes.contains(error.extendedResultCode) && isFull(path)
    }

    /// Whether less space is free than the smallest shared memory needs, 32 KiB, or no further file can be created.
    private static func isFull(_ path: String) -> Bool {
        var info = statvfs()
        guard statvfs(path, &info) == 0 else { return false }
        let isShortOfFiles = info.f_files > 0 && info.f_favail == 0
        let (free, overflow) = UInt64(info.f_bavail).multipliedReportingOverflow(by: UInt64(info.f_frsize))
        return (!overflow && free < 32_768) || isShortOfFiles
    }
}
