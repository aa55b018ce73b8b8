internal import GRDB

/// Values of a row, whatever a person has put there: SQLite keeps text in a column of numbers, and GRDB ends the process where a
/// value isn't of the type that is asked for. These are preferred to GRDB's own, which are generic.
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

    /// Nil for null; the nearest number that there is for what is none.
    private func clamped(_ column: String) -> Int64? {
        switch value(column).storage {
        case .null: nil
        case .int64(let value): value
        case .double(let value): Int64(clamped: value)
        case .string(let text): Int64(text) ?? Double(text).map { Int64(clamped: $0) } ?? 0
        case .blob: 0
        }
    }

    /// A column that isn't there is a mistake in this program, and reads as null all the same.
    private func value(_ column: String) -> DatabaseValue {
        guard let place = columnNames.firstIndex(of: column) else { return .null }
        let distance = columnNames.distance(from: columnNames.startIndex, to: place)
        return databaseValues[databaseValues.index(databaseValues.startIndex, offsetBy: distance)]
    }
}

extension Int64 {
    fileprivate init(clamped value: Double) {
        guard value.isFinite else {
            self = value.isNaN ? 0 : value < 0 ? .min : .max
            return
        }
        self = value >= 9.2e18 ? .max : value <= -9.2e18 ? .min : Int64(value)
    }
}
