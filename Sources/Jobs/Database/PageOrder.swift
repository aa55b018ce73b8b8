/// The order in which the pages of a table follow each other, each from the last key of the page before.
///
/// A shell or a damaged file can leave keys that are no text, or no UTF-8. The text that is read from such a key may sort
/// before the page, and the same page would be read for ever.
enum PageOrder {
    /// Whether a key comes after the last one of the page before, in the order of SQLite's values.
    static func isBeyond(_ last: [SQLValue], _ key: [SQLValue]) -> Bool {
        // Not by equality, which takes two spellings of a letter for one.
        for (old, new) in zip(last, key) {
            if isLess(old, new) { return true }
            if isLess(new, old) { return false }
        }
        return false
    }

    /// The same for texts.
    static func isBeyond(_ last: [String], _ key: [String]) -> Bool {
        isBeyond(last.map(SQLValue.text), key.map(SQLValue.text))
    }

    private static func isLess(_ first: SQLValue, _ second: SQLValue) -> Bool {
        switch (first, second) {
        case (.integer(let first), .integer(let second)): first < second
        case (.integer(let first), .real(let second)): Double(first) < second
        case (.real(let first), .integer(let second)): first < Double(second)
        case (.real(let first), .real(let second)): first < second
        case (.text(let first), .text(let second)): first.utf8.lexicographicallyPrecedes(second.utf8)
        case (.bytes(let first), .bytes(let second)): first.lexicographicallyPrecedes(second)
        default: rank(first) < rank(second)
        }
    }

    /// Null, numbers, text, bytes (SQLite's "Datatypes", 4.1).
    private static func rank(_ value: SQLValue) -> Int {
        switch value {
        case .null: 0
        case .integer, .real: 1
        case .text: 2
        case .bytes: 3
        }
    }
}
