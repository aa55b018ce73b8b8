internal import GRDB

// Anybody may write into the tables, and a column that says INTEGER takes words as well. What isn't what it should be is
// nothing, and never the end of the program.
extension Row {
    func number(_ column: String) -> Int64? { Int64.fromDatabaseValue(self[column]) }

    /// As many as fit into an `Int`, and none where there is no number.
    func count(_ column: String) -> Int { Int(clamping: Swift.max(0, number(column) ?? 0)) }

    func real(_ column: String) -> Double? {
        Double.fromDatabaseValue(self[column]).flatMap { $0.isFinite ? $0 : nil }
    }

    func text(_ column: String) -> String? { String.fromDatabaseValue(self[column]) }
}
