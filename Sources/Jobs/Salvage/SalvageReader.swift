internal import GRDB

/// Reads a table of a broken database row by row, and skips unreadable pages.
struct SalvageReader {
    let database: DatabaseQueue

    /// The result of reading one table.
    struct Outcome {
        var rows = 0
        /// Why some rows could not be read.
        var failure: String?
    }

    private static let page = 200
    /// Maximum rows that are looked up one by one in a gap.
    private static let maxLookUps: Int64 = 2_000_000

    /// - Parameters:
    ///   - key: the columns of the primary key; rows are read in their order.
    ///   - isNumber: whether the key is a single number, so that rows in a gap can be looked up one by one.
    func read(_ table: String, key: [String], isNumber: Bool, _ take: (Row) throws -> Void) throws -> Outcome {
        var outcome = Outcome()
        let (last, failure) = try walk(table, key, forwards: true, limit: nil, &outcome, take)
        guard let failure else { return outcome }
        outcome.failure = failure
        let (first, _) = try walk(table, key, forwards: false, limit: last, &outcome, take)
        // A damaged database may have any number as a key.
        let low = max(Self.number(last) ?? 0, 0)
        if isNumber, let high = Self.number(first), high > low, high - low > 1 {
            try lookUp(table, key[0], (low + 1)...(low + min(high - low - 1, Self.maxLookUps)), &outcome, take)
        }
        return outcome
    }

    private static func number(_ key: [SQLValue]?) -> Int64? {
        if case .integer(let number) = key?.first { number } else { nil }
    }

    /// Reads until the end of the table or an unreadable row.
    ///
    /// - Parameter limit: where to stop if it walks backwards.
    /// - Returns: the key of the last row that was read, and the error that ended the walk.
    private func walk(
        _ table: String, _ key: [String], forwards: Bool, limit: [SQLValue]?, _ outcome: inout Outcome,
        _ take: (Row) throws -> Void,
    ) throws -> (last: [SQLValue]?, failure: String?) {
        let columns = key.joined(separator: ", ")
        let marks = key.map { _ in "?" }.joined(separator: ", ")
        let order = key.map { "\($0) \(forwards ? "ASC" : "DESC")" }.joined(separator: ", ")
        var last: [SQLValue]?
        var size = Self.page
        while true {
            var conditions: [String] = []
            var arguments: [SQLValue] = []
            if let last {
                conditions.append("(\(columns)) \(forwards ? ">" : "<") (\(marks))")
                arguments += last
            }
            if let limit {
                conditions.append("(\(columns)) > (\(marks))")
                arguments += limit
            }
            let filter = conditions.isEmpty ? "" : "WHERE " + conditions.joined(separator: " AND ")
            let sql = "SELECT * FROM \(table) \(filter) ORDER BY \(order) LIMIT \(size)"
            let rows: [Row]
            do {
                rows = try database.writeWithoutTransaction {
                    try Connection($0).rows(sql, SQLValues(arguments))
                }
            } catch {
                // Tries again row by row, to get closer to the unreadable one.
                if size > 1 {
                    size = 1
                    continue
                }
                let isOfDisk = (error as? DatabaseError)?.resultCode == .SQLITE_IOERR
                return (last, isOfDisk ? "the disk can't read the others" : "the pages of the others are damaged")
            }
            for row in rows { try take(row) }
            outcome.rows += rows.count
            guard let end = rows.last, rows.count == size else { return (last, nil) }
            let next: [SQLValue] = key.map(end.value)
            if let last, !(forwards ? PageOrder.isBeyond(last, next) : PageOrder.isBeyond(next, last)) {
                return (last, "the keys of the others are no text")
            }
            last = next
        }
    }

    private func lookUp(
        _ table: String, _ key: String, _ range: ClosedRange<Int64>, _ outcome: inout Outcome,
        _ take: (Row) throws -> Void,
    ) throws {
        for number in range {
            // Best effort: a row on an unreadable page stays lost; its neighbours may be on another page.
            let row = try? database.writeWithoutTransaction {
                try Connection($0).row("SELECT * FROM \(table) WHERE \(key) = ?", [number])
            }
            guard let row = row ?? nil else { continue }
            try take(row)
            outcome.rows += 1
        }
    }
}
