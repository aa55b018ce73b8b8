internal import GRDB

extension JobStore {
    /// Of `dominant_colour`, `blurhash`, `thumbhash` and `phash`, from this column on; nil where no pixel of the source was
    /// ever decoded.
    static func looks(_ row: Row, from column: Int) -> SourceLooks? {
        guard let blurHash: String = row[column + 1], let thumbHash: String = row[column + 2] else { return nil }
        return SourceLooks(
            dominantColour: row[column], blurHash: blurHash, thumbHash: thumbHash, perceptualHash: row[column + 3])
    }

    static func save(_ looks: SourceLooks, hash: String, in db: Database) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO source_facts (hash, dominant_colour, blurhash, thumbhash, phash) VALUES (?, ?, ?, ?, ?)
                ON CONFLICT (hash) DO UPDATE SET dominant_colour = excluded.dominant_colour,
                    blurhash = excluded.blurhash, thumbhash = excluded.thumbhash, phash = excluded.phash
                """
        ).execute(arguments: [hash, looks.dominantColour, looks.blurHash, looks.thumbHash, looks.perceptualHash])
    }
}
