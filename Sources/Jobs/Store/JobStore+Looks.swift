internal import GRDB

extension JobStore {
    /// Nil where no pixel of the source was ever decoded.
    static func looks(_ row: Row) -> SourceLooks? {
        guard let blurHash: String = row["blurhash"], let thumbHash: String = row["thumbhash"] else { return nil }
        return SourceLooks(
            dominantColour: row["dominant_colour"], blurHash: blurHash, thumbHash: thumbHash,
            perceptualHash: row["phash"],
        )
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
