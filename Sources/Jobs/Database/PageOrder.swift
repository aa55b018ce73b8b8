internal import GRDB

/// The order in which the pages of a table follow each other, each from the last key of the page before.
///
/// A shell or a damaged file can leave keys that are no text, or no UTF-8. Such a key is read as another one, which may come
/// before the page: then the same rows would be read for ever.
enum PageOrder {
    /// Whether a key comes after the last one of the page before, in the order of SQLite's values.
    static func isBeyond(_ last: [DatabaseValue], _ key: [DatabaseValue]) -> Bool {
        // Not by equality, which takes two spellings of a letter for one.
        for (old, new) in zip(last, key) {
            if isLess(old, new) { return true }
            if isLess(new, old) { return false }
        }
        return false
    }

    /// The same for texts.
    static func isBeyond(_ last: [String], _ key: [String]) -> Bool {
        isBeyond(last.map(\.databaseValue), key.map(\.databaseValue))
    }

    private static func isLess(_ first: DatabaseValue, _ second: DatabaseValue) -> Bool {
        switch (first.storage, second.storage) {
        case (.int64(let first), .int64(let second)): first < second
        case (.int64(let first), .double(let second)): Double(first) < second
        case (.double(let first), .int64(let second)): first < Double(second)
        case (.double(let first), .double(let second)): first < second
        case (.string(let first), .string(let second)): first.utf8.lexicographicallyPrecedes(second.utf8)
        case (.blob(let first), .blob(let second)): first.lexicographicallyPrecedes(second)
        default: rank(first) < rank(second)
        }
    }

    /// Null, numbers, text, bytes (SQLite's "Datatypes", 4.1).
    private static func rank(_ value: DatabaseValue) -> Int {
        switch value.storage {
        case .null: 0
        case .int64, .double: 1
        case .string: 2
        case .blob: 3
        }
    }
}
