internal import Glibc

/// Finds processes that hold a lock on a file, in the kernel's list /proc/locks. Only used for messages.
enum LockHolders {
    enum Kind: String {
        /// `flock(2)` of the lock file.
        case whole = "FLOCK"
        /// `fcntl(2)` locks of single bytes, which SQLite takes in the shared memory beside the database.
        case bytes = "POSIX"
    }

    /// SQLite's lock for writing, as a byte of the shared memory (https://www.sqlite.org/walformat.html, 2.1).
    static let writerByte: ClosedRange<UInt64> = 120...120
    /// Its locks of readers. A reader that needs nothing of the log holds the first, which stops a checkpoint, too.
    static let readerBytes: ClosedRange<UInt64> = 123...127

    /// Other processes that hold a lock of this kind on some of these bytes.
    ///
    /// - Parameter bytes: nil for any bytes.
    static func processes(_ kind: Kind, on path: String, bytes: ClosedRange<UInt64>? = nil) -> [Int32] {
        var info = stat()
        guard stat(path, &info) == 0, let locks = fopen("/proc/locks", "re") else { return [] }
        defer { fclose(locks) }
        var line = [CChar](repeating: 0, count: 256)
        var found: Set<Int32> = []
        while fgets(&line, Int32(line.count), locks) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            // 1: POSIX  ADVISORY  READ 1234 fe:01:5678 124 124
            let fields = text.split(whereSeparator: \.isWhitespace)
            guard fields.count >= 8, fields[1] == kind.rawValue, let pid = Int32(fields[4]), pid > 0,
                fields[5].split(separator: ":").last.flatMap({ UInt64($0) }) == UInt64(info.st_ino)
            else { continue }
            if let bytes {
                guard let start = UInt64(fields[6]), let end = fields[7] == "EOF" ? .max : UInt64(fields[7]),
                    start <= end, bytes.overlaps(start...end)
                else { continue }
            }
            if pid != getpid() { found.insert(pid) }
        }
        return found.sorted()
    }

    /// `process 1234 (sqlite3)` for each of at most three processes.
    static func names(_ processes: [Int32]) -> String {
        let shown = processes.prefix(3).map { pid in
            command(pid).map { "process \(pid) (\($0))" } ?? "process \(pid)"
        }
        let more = processes.count > 3 ? " and \(processes.count - 3) more" : ""
        return shown.joined(separator: ", ") + more
    }

    private static func command(_ pid: Int32) -> String? {
        guard let file = fopen("/proc/\(pid)/comm", "re") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 64)
        guard fgets(&line, Int32(line.count), file) != nil else { return nil }
        let text = String(decoding: line.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return text.isEmpty ? nil : text
    }
}
