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
            var ending = try GroupEnding(now: try reading.moment(in: db), held: held, refusals, in: db)
            for part in refusals.isOneByOne ? group.map({ [$0] }) : [group] { try ending.end(part) }
            return try ending.close(reserved)
        }
        var whole = finished
        whole.refused = refused
        return whole
    }
}

/// Ends items within one transaction, step by step. A step runs one statement for all items that need it, which on
/// PostgreSQL takes one round trip.
struct GroupEnding {
    typealias One = (item: ClaimedItem, ending: ItemEnding)

    private let now: Moment
    private let refusals: ItemRefusals
    private let statements: RowStatements
    private let isNotingURLs: Bool
    private var record: IndexRecord
    private var moves: JobCounterBatch
    private var failures: [HostBook.FailureCount: Int] = [:]
    private var log = EndedItems()
    private var finished = FinishedGroup()

    private var db: Connection { statements.db }

    init(now: Moment, held: HeldBlobs?, _ refusals: ItemRefusals, in db: Connection) throws {
        self.now = now
        self.refusals = refusals
        statements = RowStatements(db)
        record = IndexRecord(now: now, held: held, statements)
        moves = try JobCounterBatch(in: db)
        isNotingURLs = try moves.isCounting && db.exists("SELECT 1 FROM done_urls")
    }

    /// Ends a group, or a part of it.
    mutating func end(_ group: [One]) throws {
        let ended = try move(try withoutDoubtful(try withoutRefused(group)))
        guard !ended.isEmpty else { return }
        try JobQueue.change(group: ended.map(\.item.id), to: ended[0].ending.state, in: db) {
            try acquit(ended)
            try TryRecord.save(ended.compactMap { one in one.item.lastTry.map { (one.item.id, $0) } }, in: statements)
            try noteFailures(of: ended)
            try save(Self.done(of: ended))
        }
    }

    private static func done(of group: [One]) -> [(item: ClaimedItem, completion: Completion)] {
        group.compactMap { one in
            if case .done(let completion) = one.ending { (item: one.item, completion: completion) } else { nil }
        }
    }

    /// Writes the sums. Call it once, after all parts.
    mutating func close(_ reserved: GroupReservation?) throws -> FinishedGroup {
        try HostBook.count(failures, now: now.wall, in: db)
        try record.addUp()
        finished.links = record.links
        if let reserved {
            finished.counted = record.added.filter { reserved.hashes.contains($0.key) }
            let bytes = finished.counted.values.reduce(0, +)
            if bytes > 0 { try CacheEviction.giveBack(bytes, of: reserved.worker, in: db) }
        }
        if moves.isCounting {
            try log.log(at: now.wall, in: db)
            try moves.addUp(in: db)
        }
        return finished
    }

    // MARK: - Which items end

    /// Fails the items whose end was refused before.
    private func withoutRefused(_ group: [One]) throws -> [One] {
        guard !refusals.failures.isEmpty else { return group }
        return try group.filter { one in
            guard let failure = refusals.failures[one.item.id], try JobQueue.isOurs(one.item, in: db) else {
                return true
            }
            try JobQueue.fail(refused: one.item.id, failure, now: now.wall, in: db)
            return false
        }
    }

    private mutating func withoutDoubtful(_ group: [One]) throws -> [One] {
        guard record.held != nil else { return group }
        let done = Self.done(of: group)
        let areDoubtful = try record.areDoubtful(done.map(\.completion))
        guard areDoubtful.contains(true) else { return group }
        let doubtful = Set(zip(done, areDoubtful).filter(\.1).map(\.0.item.id))
        finished.doubtful.formUnion(doubtful)
        return group.filter { !doubtful.contains($0.item.id) }
    }

    /// Changes the items' states.
    ///
    /// - Returns: those that this lease still held.
    private mutating func move(_ group: [One]) throws -> [One] {
        let isMoved = try EndedRows(group, now: now, statements).move(by: moves)
        var ended: [One] = []
        ended.reserveCapacity(group.count)
        for (one, isMoved) in zip(group, isMoved) {
            guard isMoved else {
                if try JobQueue.isOurs(one.item, in: db) {
                    throw JobQueue.refusal(.item(one.item.id), to: one.ending.state, JobQueue.ignored)
                }
                finished.fencedOut.insert(one.item.id)
                continue
            }
            ended.append(one)
            guard moves.isCounting else { continue }
            log.add(one.item, one.ending)
            moves.count(one.item.job, from: .active, to: one.ending.counter, bytes: one.ending.bytes)
        }
        return ended
    }

    // MARK: - What is recorded of them

    /// Clears the suspicion of items that their worker has survived.
    private func acquit(_ ended: [One]) throws {
        let acquitted = ended.filter { one in
            guard one.item.deaths > 0 else { return false }
            switch one.ending {
            case .wait, .release: return false
            case .done, .failed, .blacklisted, .retry, .fallBack: return true
            }
        }
        guard !acquitted.isEmpty else { return }
        try statements("UPDATE items SET deaths = 0 WHERE id = ?").runEach(acquitted) { $0.item.id }
    }

    /// Records failures of hosts, and puts URLs on the blacklist if their failures require it.
    private mutating func noteFailures(of ended: [One]) throws {
        var listings: [Blacklist.Listing] = []
        var blocks: [(host: String, until: SteadyTime)] = []
        for (item, ending) in ended {
            if case .retry(let time, let failure, true) = ending {
                blocks.append((failure.host(of: item), now.steady(time)))
            }
            if let listing = ending.listed.flatMap({ listing($0, of: item) }) { listings.append(listing) }
            guard let failed = ending.failedTry, failed.hasAsked else { continue }
            if failed.failureClass.isOfHost {
                let count = HostBook.FailureCount(host: failed.host(of: item), failure: failed.failureClass)
                failures[count, default: 0] += 1
            }
            if let time = failed.blocksHostUntil { blocks.append((failed.host(of: item), now.steady(time))) }
        }
        if !listings.isEmpty { try Blacklist.add(listings, now: now.wall, in: statements) }
        try HostBook.block(blocks, now: now.steady, in: db)
    }

    private func listing(_ failure: Failure, of item: ClaimedItem) -> Blacklist.Listing? {
        let own = failure.failureClass.blacklistDuration
        guard let duration = failure.isListed.map({ $0 ? own ?? FailureClass.day : nil }) ?? own else { return nil }
        return Blacklist.Listing(
            key: item.key, host: URLText.host(item.url), failure: failure, until: now.steady + duration)
    }

    private mutating func save(_ done: [(item: ClaimedItem, completion: Completion)]) throws {
        guard !done.isEmpty else { return }
        try CacheIndex.save(
            done.map { item, completion in (completion.source, completion.isCached ? item.source : nil) },
            now: now.steady, in: statements)
        try CacheIndex.save(
            done.flatMap { item, completion in completion.renditions.map { (item.id, $0) } }, in: statements)
        try CacheIndex.save(done.flatMap(\.completion.newVariants), now: now.wall, in: statements)
        let answered = done.filter { item, completion in
            let isConfirmed = item.source.map { $0.fetchedAt != completion.source.fetchedAt } ?? false
            return !completion.isCached || isConfirmed
        }
        if !answered.isEmpty { try Blacklist.remove(keys: answered.map(\.item.key), in: statements) }
        try record.add(done)
        // Makes jobs with `only-new` leave out the items' URLs: as they were enqueued, even if a fallback was used.
        if isNotingURLs {
            try statements("INSERT OR IGNORE INTO done_urls SELECT url, id FROM items WHERE id = ?")
                .runEach(done) { $0.item.id }
        }
    }
}
