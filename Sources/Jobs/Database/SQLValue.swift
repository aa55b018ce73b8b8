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
