internal import Core
internal import GRDB

/// Reads values of rows that any program may have written. SQLite stores text in a column of numbers, and GRDB ends the
/// process if a value does not have the requested type. Swift prefers these subscripts to GRDB's, which are generic.
extension Row {
    subscript(_ column: String) -> Int64 { self[column] as Int64? ?? 0 }

    subscript(_ column: String) -> Int64? { clamped(column) }

    subscript(_ column: String) -> Int { Int(clamping: self[column] as Int64? ?? 0) }

    subscript(_ column: String) -> Int? { clamped(column).map { Int(clamping: $0) } }

    subscript(_ column: String) -> Int32 { Int32(clamping: self[column] as Int64? ?? 0) }

    subscript(_ column: String) -> Bool { (self[column] as Int64? ?? 0) != 0 }

    subscript(_ column: String) -> Bool? { clamped(column).map { $0 != 0 } }

    subscript(_ column: String) -> Double { self[column] as Double? ?? 0 }

    subscript(_ column: String) -> Double? {
        switch value(column).storage {
        case .null: nil
        case .int64(let value): Double(value)
        case .double(let value): value
        case .string(let text): Double(text) ?? 0
        case .blob: 0
        }
    }

    subscript(_ column: String) -> String { self[column] as String? ?? "" }

    subscript(_ column: String) -> String? {
        switch value(column).storage {
        case .null: nil
        case .int64(let value): "\(value)"
        case .double(let value): "\(value)"
        case .string(let text): text
        case .blob(let bytes): String(decoding: bytes, as: UTF8.self)
        }
    }

    /// Nil for null; for a value of another type, the nearest number.
    private func clamped(_ column: String) -> Int64? {
        switch value(column).storage {
        case .null: nil
        case .int64(let value): value
        case .double(let value): Int64(clamped: value)
        case .string(let text): Int64(text) ?? Double(text).map { Int64(clamped: $0) } ?? 0
        case .blob: 0
        }
    }

    /// A missing column is a bug in this program, and reads as null anyway.
    private func value(_ column: String) -> DatabaseValue {
        guard let place = columnNames.firstIndex(of: column) else { return .null }
        let distance = columnNames.distance(from: columnNames.startIndex, to: place)
        return databaseValues[databaseValues.index(databaseValues.startIndex, offsetBy: distance)]
    }
}

extension Int64 {
    /// No file is as large as this many bytes.
    static let maxBytes: Int64 = 1 << 53

    init(bytes: Int64) { self = Swift.min(Swift.max(0, bytes), Self.maxBytes) }

    /// Adds a number of bytes from a row. No number of rows makes the sum overflow.
    mutating func add(bytes: Int64) { self = Swift.min(self + Int64(bytes: bytes), 1 << 62) }

    fileprivate init(clamped value: Double) {
        guard value.isFinite else {
            self = value.isNaN ? 0 : value < 0 ? .min : .max
            return
        }
        self = value >= 9.2e18 ? .max : value <= -9.2e18 ? .min : Int64(value)
    }
}

// Any program may write into the tables, and an INTEGER column also accepts text. A value of the wrong type reads as
// none, and never ends the program.
extension Row {
    func number(_ column: String) -> Int64? { Int64.fromDatabaseValue(self[column]) }

    /// A time of the machine's clock.
    func wall(_ column: String) -> WallTime? { time(column) }

    /// A time of the database's own clock.
    func steady(_ column: String) -> SteadyTime? { time(column) }

    private func time<Time: ClockTime>(_ column: String) -> Time? { number(column).map(Time.init(clamping:)) }

    /// A number of bytes, clamped so that the sum of a thousand cannot overflow.
    func size(_ column: String) -> Int64 { Int64(bytes: self[column] as Int64) }

    /// A number of items, clamped so that the sum of a few cannot overflow.
    func items(_ column: String) -> Int { Int(clamping: size(column)) }

    /// The number, clamped to `Int`; 0 if there is no number.
    func count(_ column: String) -> Int { Int(clamping: Swift.max(0, number(column) ?? 0)) }

    func real(_ column: String) -> Double? {
        Double.fromDatabaseValue(self[column]).flatMap { $0.isFinite ? $0 : nil }
    }

    func text(_ column: String) -> String? { String.fromDatabaseValue(self[column]) }
}
