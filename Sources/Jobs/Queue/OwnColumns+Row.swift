internal import FoundationEssentials

extension OwnColumns {
    /// A condition on an item's row: the item has at least one column of its own.
    static let areGiven =
        "coalesce(meta, variants, headers, sha256, fallbacks) IS NOT NULL OR coalesce(priority, size) IS NOT NULL"

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
        // Best effort: `OwnColumns` turns lists that can't be read into the item's problem.
        self.init(
            meta: row.text(0), priority: row.number(1), variants: row.text(2), sha256: row.text(4), size: row.number(5),
            try? lists.get(), fallback: row.number(7) ?? 0)
    }
}
