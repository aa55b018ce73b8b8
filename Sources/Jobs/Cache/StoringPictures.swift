internal import Core

/// Records pictures that no job has fetched or made.
extension CacheIndex {
    /// The key under which a picture of a URL is stored: the key of the URL's present entry; if there is none, a key of
    /// the URL that has a source; otherwise the URL's own key.
    ///
    /// - Parameter variant: the variant's name, or `original`.
    public func place(ofURL url: String, variant: String) async throws(JobsError) -> PicturePlace {
        try await gate.read { db in
            let statements = RowStatements(db)
            let keys = try Self.keys(ofURL: url, in: db)
            let named = try keys.first { try Self.entry(key: $0, variant: variant, in: db) != nil }
            let sourced = try named == nil ? keys.first { try Self.source(key: $0, in: statements) != nil } : nil
            var place = PicturePlace(key: named ?? sourced ?? URLText.cacheKey(url))
            place.entry = try Self.entry(key: place.key, variant: variant, in: db)
            place.source = try Self.source(key: place.key, in: statements)
            if variant != CacheEntry.original, let entry = place.entry, let source = place.source {
                place.variants = try db.rows(
                    "SELECT * FROM variants WHERE blob = ? AND source = ?", [entry.blob, source.hash]
                ).map(VariantRecord.init(row:))
            }
            return place
        }
    }

    /// Records a group of pictures in one transaction. A source takes its URL off the blacklist, as a download does.
    ///
    /// - Parameters:
    ///   - held: the blobs whose files the caller holds: those of all pictures except known ones.
    ///   - reserved: the reservation that ends once the index counts the files.
    public func store(
        _ group: [StoredPicture], held: HeldBlobs, reserved: GroupReservation?,
    ) async throws(JobsError) -> StoredGroup {
        guard !group.isEmpty else { return StoredGroup() }
        let reading = gate.reading
        return try await gate.write { db in
            var stored = StoredGroup()
            let now = try reading.moment(in: db)
            let statements = RowStatements(db)
            var record = IndexRecord(now: now, held: held, statements)
            for (place, picture) in group.enumerated() where picture.isKnown {
                if try !Self.use(picture, now: now, in: db) { stored.gone.insert(place) }
            }
            let new = group.filter { !$0.isKnown }
            if let owner = held.owner, db.sqlite == nil {
                let blobs = Set(new.map(\.rendition.blob))
                let announced = try CacheEviction.takeBack(blobs, of: owner, in: statements)
                guard announced == blobs else {
                    throw JobsError(
                        .inputOutput, "The database has restarted while files were stored, and may have let go of them."
                    )
                }
            }
            try Self.save(new.compactMap(\.source), now: now.steady, in: statements)
            try Blacklist.remove(keys: new.filter { $0.source != nil }.map(\.key), in: statements)
            try Self.save(new.flatMap(\.variants), now: now.wall, in: statements)
            try record.add(new)
            try record.addUp()
            stored.links = record.links
            if let reserved {
                stored.counted = record.added.filter { reserved.hashes.contains($0.key) }
                let bytes = stored.counted.values.reduce(0, +)
                if bytes > 0 { try CacheEviction.giveBack(bytes, of: reserved.worker, in: db) }
            }
            return stored
        }
    }

    /// Records that a known picture was stored again. A source counts as fetched now.
    ///
    /// - Returns: whether the index still has it.
    private static func use(_ picture: StoredPicture, now: Moment, in db: Connection) throws -> Bool {
        let hash = picture.rendition.blob
        guard try entry(key: picture.key, variant: picture.rendition.name, in: db)?.blob == hash else { return false }
        let isThere = try db.change(
            "UPDATE blobs SET used_at = max(used_at, ?) WHERE hash = ? AND dying = 0", [now.steady.milliseconds, hash])
        guard isThere > 0 else { return false }
        guard picture.source != nil else { return true }
        let isSource = try db.change(
            "UPDATE sources SET fetched_at = ?, used_at = max(used_at, ?) WHERE key = ? AND hash = ?",
            [now.wall.milliseconds, now.steady.milliseconds, picture.key, hash])
        try Blacklist.remove(keys: [picture.key], in: RowStatements(db))
        return isSource > 0
    }
}
