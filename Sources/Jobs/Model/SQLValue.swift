internal import Core

/// A value of a column or of a statement's parameter.
enum SQLValue: Hashable, Sendable {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
    case bytes([UInt8])
}

/// The values of a statement's parameters, in their order.
struct SQLValues: ExpressibleByArrayLiteral, Sendable {
    private(set) var all: [SQLValue]

    init(arrayLiteral elements: (any RowValue)?...) { all = elements.map { $0?.value ?? .null } }

    init(_ elements: [(any RowValue)?]) { all = elements.map { $0?.value ?? .null } }

    init(_ values: [SQLValue]) { all = values }

    static func + (first: Self, second: Self) -> Self { Self(first.all + second.all) }

    static func += (first: inout Self, second: Self) { first.all += second.all }
}

/// A row of a result.
struct Row: Sendable {
    let columnNames: [String]
    let values: [SQLValue]

    /// A column that the statement does not return is a bug in this program, and reads as null.
    func value(_ column: String) -> SQLValue {
        columnNames.firstIndex(of: column).map { values[$0] } ?? .null
    }
}

/// A type whose values can be bound to parameters.
protocol RowValue: Sendable {
    var value: SQLValue { get }
}

extension SQLValue: RowValue {
    var value: SQLValue { self }
}

extension Int64: RowValue {
    var value: SQLValue { .integer(self) }
}

extension WallTime: RowValue {
    var value: SQLValue { .integer(milliseconds) }
}

extension SteadyTime: RowValue {
    var value: SQLValue { .integer(milliseconds) }
}

extension Int: RowValue {
    var value: SQLValue { .integer(Int64(self)) }
}

extension Int32: RowValue {
    var value: SQLValue { .integer(Int64(self)) }
}

extension Bool: RowValue {
    var value: SQLValue { .integer(self ? 1 : 0) }
}

extension Double: RowValue {
    var value: SQLValue { .real(self) }
}

extension String: RowValue {
    var value: SQLValue { .text(self) }
}

extension Optional: RowValue where Wrapped: RowValue {
    var value: SQLValue { self?.value ?? .null }
}
