internal import Core

extension JobQueue {
    /// Ends a group of items, with the index entries of their results, in one transaction.
    ///
    /// - Returns: the ids of items that this lease no longer holds.
    @discardableResult
    public func finish(_ group: [(item: ClaimedItem, ending: ItemEnding)]) async throws(JobsError) -> Set<Int64> {
        try await finish(group, held: nil, reserved: nil).fencedOut
    }

    /// The same while a collector runs, which may delete a file that the worker does not hold.
    ///
    /// - Parameters:
    ///   - held: the blobs whose files the worker holds. If one of an item's blobs is not held, and is dying or missing
    ///     in the index, the item does not end and is ``FinishedGroup/doubtful``.
    ///   - reserved: the reservation that ends once the index counts the files.
    /// - Returns: what became of them. An item whose end the database refuses ends as `refused-by-database`.
    public func finish(
        _ group: [(item: ClaimedItem, ending: ItemEnding)], held: HeldBlobs?, reserved: GroupReservation?,
    ) async throws(JobsError) -> FinishedGroup {
        guard !group.isEmpty else { return FinishedGroup() }
        let reading = gate.reading
        let (finished, refused) = try await writeSparingOthers { db, refusals in
            var finished = FinishedGroup()
            let now = try reading.moment(in: db)
            let statements = RowStatements(db)
            var record = IndexRecord(now: now, held: held, statements)
            var moves = try JobCounterBatch(in: db)
            var failures: [HostBook.FailureCount: Int] = [:]
            var ended = EndedItems()
            let isNotingURLs = try db.exists("SELECT 1 FROM done_urls")
            for (item, ending) in group {
                if let failure = refusals.failures[item.id], try Self.isOurs(item, in: db) {
                    try Self.fail(refused: item.id, failure, now: now.wall, in: db)
                    continue
                }
                if case .done(let completion) = ending, try !record.hasFiles(of: completion) {
                    finished.doubtful.insert(item.id)
                    continue
                }
                try moves.announce(item.id, to: ending.state)
                let isEnded = try Self.change(item.id, to: ending.state) {
                    try Self.end(item, ending, now: now, in: statements)
                }
                guard isEnded else {
                    if try Self.isOurs(item, in: db) {
                        throw Self.refusal(.item(item.id), to: ending.state, Self.ignored)
                    }
                    finished.fencedOut.insert(item.id)
                    continue
                }
                ended.add(item, ending)
                if item.deaths > 0 { try Self.acquit(item, ending, in: db) }
                moves.count(item.job, from: .active, to: ending.counter, bytes: ending.bytes)
                if let lastTry = item.lastTry { try lastTry.save(item: item.id, in: statements) }
                if let failed = ending.failedTry, failed.hasAsked {
                    if failed.failureClass.isOfHost {
                        failures[
                            HostBook.FailureCount(host: failed.host(of: item), failure: failed.failureClass), default: 0
                        ] +=
                            1
                    }
                    if let time = failed.blocksHostUntil {
                        try HostBook.block(
                            host: failed.host(of: item), until: now.steady(time), now: now.steady, in: db)
                    }
                }
                if case .done(let completion) = ending {
                    try Self.change(item.id, to: .done) {
                        try record.add(completion, of: item)
                        if isNotingURLs { try Self.noteURL(of: item, in: statements) }
                    }
                }
            }
            try HostBook.count(failures, now: now.wall, in: db)
            try record.addUp()
            finished.links = record.links
            if let reserved {
                finished.counted = record.added.filter { reserved.hashes.contains($0.key) }
                let bytes = finished.counted.values.reduce(0, +)
                if bytes > 0 { try CacheEviction.giveBack(bytes, of: reserved.worker, in: db) }
            }
            try ended.log(at: now.wall, in: db)
            try moves.addUp(in: db)
            return finished
        }
        var whole = finished
        whole.refused = refused
        return whole
    }

    /// Makes jobs with `only-new` leave out the item's URL: as it was enqueued, even if a fallback was used.
    private static func noteURL(of item: ClaimedItem, in statements: RowStatements) throws {
        try statements("INSERT OR IGNORE INTO done_urls SELECT url, id FROM items WHERE id = ?").run(item.id)
    }

    /// Clears the suspicion of an item that its worker has survived.
    private static func acquit(_ item: ClaimedItem, _ ending: ItemEnding, in db: Connection) throws {
        switch ending {
        case .wait, .release: return
        case .done, .failed, .blacklisted, .retry, .fallBack:
            try db.run("UPDATE items SET deaths = 0 WHERE id = ?", [item.id])
        }
    }

    /// - Returns: whether this lease still held the item.
    private static func end(
        _ item: ClaimedItem, _ ending: ItemEnding, now: Moment, in statements: RowStatements,
    ) throws -> Bool {
        let db = statements.db
        switch ending {
        case .done(let completion):
            return try complete(item, completion, now: now, in: statements)
        case .failed(let failure):
            guard try fail(item, failure, blacklisted: false, tries: 1, now: now.wall, in: db) else { return false }
            try list(failure, of: item, now: now, in: db)
            return true
        case .fallBack(let failure):
            let isOurs = try update(
                """
                state = 'queued', lease = NULL, attempts = 0, fallback = coalesce(fallback, 0) + 1, class = ?,
                http_status = ?, message = ?
                """, [failure.failureClass.rawValue, failure.httpStatus, failure.message], item, in: db)
            if isOurs, failure.hasAsked { try list(failure, of: item, now: now, in: db) }
            return isOurs
        case .blacklisted(let entry):
            let failure = Failure(entry.failure, "On the blacklist: \(entry.message ?? entry.failure.rawValue)")
            return try fail(item, failure, blacklisted: true, tries: 0, now: now.wall, in: db)
        case .retry(let time, let failure, let blockingHost):
            if blockingHost {
                try HostBook.block(host: failure.host(of: item), until: now.steady(time), now: now.steady, in: db)
            }
            return try delay(item, until: now.steady(time), failure: failure, in: db)
        case .wait(let time, let host, let reason):
            return try update(
                "state = 'delayed', lease = NULL, run_at = ?, waits_for = ?, message = coalesce(?, message)",
                [now.steady(time).milliseconds, host, reason], item, in: db)
        case .release:
            return try update("state = 'queued', lease = NULL", [], item, in: db)
        }
    }

    /// Puts an item's URL on the blacklist if its failure requires it.
    private static func list(_ failure: Failure, of item: ClaimedItem, now: Moment, in db: Connection) throws {
        let own = failure.failureClass.blacklistDuration
        guard let duration = failure.isListed.map({ $0 ? own ?? FailureClass.day : nil }) ?? own else { return }
        try Blacklist.add(item, failure: failure, until: now.steady + duration, now: now.wall, in: db)
    }

    private static func complete(
        _ item: ClaimedItem, _ completion: Completion, now: Moment, in statements: RowStatements,
    ) throws -> Bool {
        let update = try statements(
            "complete an item",
            """
            UPDATE items SET state = 'done', lease = NULL, run_at = NULL, attempts = \(ItemSchema.attempts) + ?, class = NULL, http_status = NULL,
                message = NULL, cached = ?, bytes_from = ?, source = ?, bytes = ?, finished_at = ?
            WHERE id = ? AND \(isOurs)
            """)
        try update.run(
            completion.isCached ? 0 : 1, completion.isCached, completion.origin.stored, completion.source.hash,
            completion.source.size, now.wall, item.id, item.lease)
        guard statements.db.changesCount > 0 else { return false }
        try CacheIndex.save(
            completion.source, replacing: completion.isCached ? item.source : nil, now: now.steady, in: statements)
        for rendition in completion.renditions {
            try CacheIndex.save(rendition, item: item.id, in: statements)
        }
        for variant in completion.newVariants { try CacheIndex.save(variant, now: now.wall, in: statements) }
        let isConfirmed = item.source.map { $0.fetchedAt != completion.source.fetchedAt } ?? false
        if !completion.isCached || isConfirmed { try Blacklist.remove(key: item.key, in: statements) }
        return true
    }

    private static func fail(
        _ item: ClaimedItem, _ failure: Failure, blacklisted: Bool, tries: Int, now: WallTime, in db: Connection,
    ) throws -> Bool {
        try update(
            """
            state = 'failed', lease = NULL, run_at = NULL, attempts = \(ItemSchema.attempts) + ?, class = ?, http_status = ?, message = ?,
            blacklisted = ?, finished_at = ?
            """,
            [
                tries, failure.failureClass.rawValue, failure.httpStatus, failure.message, blacklisted,
                now.milliseconds,
            ], item, in: db,
        )
    }

    private static func delay(
        _ item: ClaimedItem, until time: SteadyTime, failure: Failure, in db: Connection,
    ) throws -> Bool {
        try update(
            """
            state = 'delayed', lease = NULL, run_at = ?, waits_for = ?, attempts = \(ItemSchema.attempts) + 1, class = ?,
            http_status = ?, message = ?
            """,
            [
                time.milliseconds, failure.host(of: item), failure.failureClass.rawValue, failure.httpStatus,
                failure.message,
            ], item, in: db,
        )
    }

    /// The fence: a row changes only if the item is still active under this lease.
    private static let isOurs = "state = 'active' AND lease = ?"

    private static func isOurs(_ item: ClaimedItem, in db: Connection) throws -> Bool {
        try db.exists("SELECT 1 FROM items WHERE id = ? AND \(isOurs)", [item.id, item.lease])
    }

    private static func update(
        _ assignments: String, _ values: SQLValues, _ item: ClaimedItem, in db: Connection,
    ) throws -> Bool {
        try db.run("UPDATE items SET \(assignments) WHERE id = ? AND \(isOurs)", values + [item.id, item.lease])
        return db.changesCount > 0
    }
}

extension ItemEnding {
    /// The failure of a try that was made just now.
    fileprivate var failedTry: Failure? {
        switch self {
        case .failed(let failure), .retry(_, let failure, _), .fallBack(let failure): failure
        case .done(let completion): completion.concealed
        case .blacklisted, .wait, .release: nil
        }
    }
}

extension Failure {
    fileprivate func host(of item: ClaimedItem) -> String { host ?? URLText.host(item.url) }
}
