internal import GRDB

extension JobStore {
    /// Of `dominant_colour`, `blurhash`, `thumbhash`, `phash` and `damage`, from this column on; nil where no pixel of the source was
    /// ever decoded.
    static func looks(_ row: RowColumns, from column: CInt) -> SourceLooks? {
        guard let blurHash = row.text(column + 1), let thumbHash = row.text(column + 2) else { return nil }
        return SourceLooks(
            dominantColour: row.text(column), blurHash: blurHash, thumbHash: thumbHash,
            perceptualHash: row.number(column + 3), damage: row.text(column + 4))
    }

    static func save(_ looks: SourceLooks, hash: String, in db: Database) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO source_facts (hash, dominant_colour, blurhash, thumbhash, phash, damage)
                    VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT (hash) DO UPDATE SET dominant_colour = excluded.dominant_colour,
                    blurhash = excluded.blurhash, thumbhash = excluded.thumbhash, phash = excluded.phash,
                    damage = excluded.damage
                """
        ).execute(arguments: [
            hash, looks.dominantColour, looks.blurHash, looks.thumbHash, looks.perceptualHash, looks.damage,
        ])
    }
}
