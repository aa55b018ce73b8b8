internal import FoundationEssentials
internal import GRDB
internal import Glibc

/// Another SQLite file, which is only read: the source of a list of URLs.
public enum OtherDatabase {
    /// A value of a row.
    public enum Value: Sendable {
        case null
        case integer(Int64)
        case number(Double)
        case text(String)
        /// Bytes, which neither are a URL nor go into JSON.
        case bytes

        public var text: String? {
            switch self {
            case .text(let text): text
            case .integer(let number): "\(number)"
            case .number(let number): "\(number)"
            case .null, .bytes: nil
            }
        }

        /// As JSON; nil if it has no value there.
        public var json: String? {
            switch self {
            case .null, .bytes: nil
            case .integer(let number): "\(number)"
            case .number(let number): number.isFinite ? "\(number)" : nil
            // Best effort: text can always be written.
            case .text(let text): (try? JSONEncoder().encode(text)).map { String(decoding: $0, as: UTF8.self) }
            }
        }
    }

    /// Calls `body` with the names of the columns and the values of each row. Blocks.
    ///
    /// - Throws: ``JobsError`` if the file or the query cannot be used; and what `body` throws.
    public static func read(
        _ path: String, _ query: String, _ body: ([String], [Value]) throws -> Void,
    ) throws {
        guard access(path, R_OK) == 0 else {
            throw JobsError(.refused, "The database \(path) can't be read: \(String(cString: strerror(errno))).")
        }
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(10)
        do {
            try DatabaseQueue(path: path, configuration: configuration).read { db in
                let cursor = try GRDB.Row.fetchCursor(db, sql: query)
                var names: [String]?
                while let row = try cursor.next() {
                    let columns = names ?? Array(row.columnNames)
                    names = columns
                    try body(columns, row.databaseValues.map(value))
                }
            }
        } catch let error as DatabaseError {
            // GRDB makes these two errors. Their messages would name GRDB's functions, so another text replaces them.
            let isNoQuery = error.resultCode == .SQLITE_MISUSE || error.message == "empty statement"
            let reason =
                isNoQuery
                ? "it must be one SELECT, without parameters" : error.message ?? "error \(error.resultCode.rawValue)"
            if error.resultCode == .SQLITE_NOTADB { throw JobsError(.refused, "\(path) is no SQLite database.") }
            throw JobsError(.refused, "The query can't be run on \(path): \(reason).")
        }
    }

    private static func value(_ value: DatabaseValue) -> Value {
        switch value.storage {
        case .null: .null
        case .int64(let number): .integer(number)
        case .double(let number): .number(number)
        case .string(let text): .text(text)
        case .blob: .bytes
        }
    }
}
