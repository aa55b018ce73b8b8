internal import CPostgres
internal import Glibc

/// The rows of one statement, in PostgreSQL's text format.
final class PostgresResult {
    private let raw: OpaquePointer
    private let library: CPostgresLibrary
    let rowCount: Int
    let columnNames: [String]
    private let types: [UInt32]

    init(_ raw: OpaquePointer, _ library: CPostgresLibrary) {
        self.raw = raw
        self.library = library
        rowCount = Int(library.ntuples(raw))
        let columns = 0..<library.nfields(raw)
        columnNames = columns.map { column in library.fname(raw, column).map { String(cString: $0) } ?? "" }
        types = columns.map { column in library.ftype(raw, column) }
    }

    deinit { library.clear(raw) }

    /// The number of rows that the statement inserted, changed, deleted or returned.
    var changes: Int { library.cmdTuples(raw).flatMap { Int(String(cString: $0)) } ?? 0 }

    func isNull(_ row: Int, _ column: Int) -> Bool { library.getisnull(raw, CInt(row), CInt(column)) != 0 }

    func text(_ row: Int, _ column: Int) -> String? {
        guard !isNull(row, column), let start = library.getvalue(raw, CInt(row), CInt(column)) else { return nil }
        let count = Int(library.getlength(raw, CInt(row), CInt(column)))
        let bytes = UnsafeRawBufferPointer(start: start, count: count)
        // A condition reads as it does in SQLite.
        if types[column] == Self.bool { return bytes.first == Self.isTrue ? "1" : "0" }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Zero for null and for text that is no number; a fraction is cut off.
    func integer(_ row: Int, _ column: Int) -> Int64 {
        guard !isNull(row, column), let start = library.getvalue(raw, CInt(row), CInt(column)) else { return 0 }
        if types[column] == Self.bool { return UInt8(bitPattern: start.pointee) == Self.isTrue ? 1 : 0 }
        errno = 0
        var end: UnsafeMutablePointer<CChar>?
        let number = strtoll(start, &end, 10)
        guard errno == 0, end.map({ $0.pointee == 0 }) ?? false else {
            let real = strtod(start, nil)
            return Int64(exactly: real.rounded(.towardZero)) ?? (real < 0 ? .min : .max)
        }
        return Int64(number)
    }

    func value(_ row: Int, _ column: Int) -> SQLValue {
        guard !isNull(row, column) else { return .null }
        switch types[column] {
        case Self.bool, Self.int8, Self.int2, Self.int4, Self.oid: return .integer(integer(row, column))
        case Self.float4, Self.float8: return .real(text(row, column).flatMap { Double($0) } ?? 0)
        case Self.numeric:
            let text = text(row, column) ?? ""
            return Int64(text).map { .integer($0) } ?? .real(Double(text) ?? 0)
        case Self.bytea: return .bytes(Self.bytes(text(row, column) ?? ""))
        default: return .text(text(row, column) ?? "")
        }
    }

    /// Reads `\x00ff`.
    private static func bytes(_ text: String) -> [UInt8] {
        let digits = Array(text.utf8.dropFirst(2)).compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] * 16 + digits[$0 + 1]) }
    }

    private static let isTrue = UInt8(ascii: "t")

    // The ids of built-in types never change: pg_type.dat in PostgreSQL's sources.
    private static let bool: UInt32 = 16
    private static let bytea: UInt32 = 17
    private static let int8: UInt32 = 20
    private static let int2: UInt32 = 21
    private static let int4: UInt32 = 23
    private static let oid: UInt32 = 26
    private static let float4: UInt32 = 700
    private static let float8: UInt32 = 701
    private static let numeric: UInt32 = 1700
}
