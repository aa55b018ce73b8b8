internal import FoundationEssentials

extension OwnColumns {
    /// Whether an item has any, as a condition on its row.
    static let areGiven = "coalesce(meta, priority, variants, headers, sha256, size, fallbacks) IS NOT NULL"

    static let question = """
        SELECT \(Schema.json("meta")), priority, variants, headers, lower(sha256), size, fallbacks, fallback
        FROM items WHERE id = ?
        """

    /// A row of ``question``.
    convenience init(_ row: RowColumns) {
        let lists = Result {
            (
                headers: try row.text(3).map { try JobQueue.headers($0) } ?? [:],
                fallbacks: try row.text(6).map { try JSONDecoder().decode([String].self, from: Data($0.utf8)) } ?? []
            )
        }
        // What can't be read is the item's problem.
        self.init(
            meta: row.text(0), priority: row.number(1), variants: row.text(2), sha256: row.text(4), size: row.number(5),
            try? lists.get(), fallback: row.number(7) ?? 0)
    }
}
