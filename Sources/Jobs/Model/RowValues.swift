internal import Core

/// Reads values of rows that any program may have written: SQLite stores text in a column of numbers, too.
extension Row {
    subscript(_ column: String) -> Int64 { self[column] as Int64? ?? 0 }

    subscript(_ column: String) -> Int64? { Self.clamped(value(column)) }

    subscript(_ column: String) -> Int { Int(clamping: self[column] as Int64? ?? 0) }

    subscript(_ column: String) -> Int? { Self.clamped(value(column)).map { Int(clamping: $0) } }

    subscript(_ column: String) -> Int32 { Int32(clamping: self[column] as Int64? ?? 0) }

    subscript(_ column: String) -> Bool { (self[column] as Int64? ?? 0) != 0 }

    subscript(_ column: String) -> Bool? { Self.clamped(value(column)).map { $0 != 0 } }

    subscript(_ column: String) -> Double { self[column] as Double? ?? 0 }

    subscript(_ column: String) -> Double? {
        switch value(column) {
        case .null: nil
        case .integer(let value): Double(value)
        case .real(let value): value
        case .text(let text): Double(text) ?? 0
        case .bytes: 0
        }
    }

    subscript(_ column: String) -> String { self[column] as String? ?? "" }

    subscript(_ column: String) -> String? { Self.text(value(column)) }

    /// A column by its number, from zero; the next subscripts do the same for other types.
    subscript(_ column: Int) -> Int64? { Self.clamped(values[column]) }

    subscript(_ column: Int) -> Int? { Self.clamped(values[column]).map { Int(clamping: $0) } }

    subscript(_ column: Int) -> Bool? { Self.clamped(values[column]).map { $0 != 0 } }

    subscript(_ column: Int) -> String? { Self.text(values[column]) }

    private static func text(_ value: SQLValue) -> String? {
        switch value {
        case .null: nil
        case .integer(let value): "\(value)"
        case .real(let value): "\(value)"
        case .text(let text): text
        case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
        }
    }

    /// Nil for null; for a value of another type, the nearest number.
    private static func clamped(_ value: SQLValue) -> Int64? {
        switch value {
        case .null: nil
        case .integer(let value): value
        case .real(let value): Int64(clamped: value)
        case .text(let text): Int64(text) ?? Double(text).map { Int64(clamped: $0) } ?? 0
        case .bytes: 0
        }
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
    func number(_ column: String) -> Int64? {
        switch value(column) {
        case .integer(let value): value
        case .real(let value): Int64(exactly: value.rounded(.towardZero))
        case .null, .text, .bytes: nil
        }
    }

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
        switch value(column) {
        case .integer(let value): Double(value)
        case .real(let value): value.isFinite ? value : nil
        case .null, .text, .bytes: nil
        }
    }

    func text(_ column: String) -> String? {
        switch value(column) {
        case .text(let text): text
        case .bytes(let bytes): String(validating: bytes, as: UTF8.self)
        case .null, .integer, .real: nil
        }
    }
}
