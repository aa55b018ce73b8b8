internal import GRDB

/// Why a try failed, as it is stored with the item.
public struct FailureRecord: Hashable, Sendable {
    public let failure: FailureClass
    /// One sentence for people.
    public let message: String
    /// Whether its URL is listed, where somebody has said so; nil leaves it to the class.
    public var isListed: Bool?
    /// Whose failure it is, where that may be another host than the URL's.
    public var host: String?
    /// Whether a request has failed, and not just the wait for one: only then it counts among the host's failures.
    public var hasAsked = true
    /// The setting of ours that refused it; its URL is listed as long as that is the same.
    public var setting: String?
    /// When its host may be asked again, in UTC milliseconds, where the host has said so.
    public var blocksHostUntil: Int64?

    public init(_ failure: FailureClass, _ message: String) {
        self.failure = failure
        self.message = message
    }

    public var httpStatus: Int? {
        if case .http(let status) = failure { return status }
        return nil
    }
}

/// What an item ended with when all went well.
public struct Completion: Sendable {
    public var source: SourceRecord
    public var renditions: [RenditionRecord]
    /// Renditions made now, for the index.
    public var newVariants: [VariantRecord]
    /// Whether it was there already, so that no network was used.
    public var isCached: Bool
    /// The failure in whose place it stands: it counts among the host's all the same.
    public var concealed: FailureRecord?

    public init(source: SourceRecord, renditions: [RenditionRecord], newVariants: [VariantRecord], isCached: Bool) {
        self.source = source
        self.renditions = renditions
        self.newVariants = newVariants
        self.isCached = isCached
    }
}

/// How a worker lets go of an item.
public indirect enum ItemEnding: Sendable {
    case done(Completion)
    /// Ends it, and blacklists the URL as the class says.
    case failed(FailureRecord)
    /// Ends it without a request, because its URL is listed.
    case blacklisted(BlacklistEntry)
    /// Tried again at this time, in UTC milliseconds; `blockingHost` keeps everybody off the host until then.
    case retry(at: Int64, FailureRecord, blockingHost: Bool)
    /// Waits without having been tried, most often for its host; `reason` is a sentence.
    case wait(until: Int64, host: String? = nil, reason: String? = nil)
    /// Back to the queue, as if it had never been claimed.
    case release
}

/// What became of a group of endings.
public struct FinishedGroup: Sendable {
    /// Items that were no longer this lease's: cancelled, deleted or taken back meanwhile. Their results were not recorded,
    /// which is not an error.
    public internal(set) var fencedOut: Set<Int64> = []
    /// Items whose files were evicted before they could be written down. They went back to the queue.
    public internal(set) var vanished: Set<Int64> = []
    /// Files that are counted by the index from now on, and no longer by the room that was set aside for them; with their
    /// sizes.
    public internal(set) var counted: [String: Int64] = [:]
}

/// Files of a group that a worker has set room aside for.
public struct GroupRoom: Sendable {
    public let worker: Int64
    public let hashes: Set<String>

    public init(worker: Int64, hashes: Set<String>) {
        self.worker = worker
        self.hashes = hashes
    }
}

extension JobStore {
    /// Ends a group of items, with the index entries of their results, in one transaction.
    ///
    /// - Returns: the ids of items that were no longer this lease's.
    @discardableResult
    public func finish(_ group: [(item: ClaimedItem, ending: ItemEnding)]) async throws(JobsError) -> Set<Int64> {
        try await finish(group, folder: nil, room: nil).fencedOut
    }

    /// The same beside a collector, which may have removed a file since somebody looked.
    ///
    /// - Parameters:
    ///   - folder: asked for each file that the index doesn't know or that is about to go.
    ///   - room: what is no longer set aside once the files are counted.
    public func finish(
        _ group: [(item: ClaimedItem, ending: ItemEnding)], folder: CacheFolder?, room: GroupRoom?,
    ) async throws(JobsError) -> FinishedGroup {
        guard !group.isEmpty else { return FinishedGroup() }
        let reading = reading
        return try await write { db in
            var finished = FinishedGroup()
            let now = Moment(wall: reading.wall, steady: try Self.cacheTime(reading, in: db))
            var record = IndexRecord(now: now.steady, folder: folder)
            var moves = try GroupMoves(in: db)
            var failures: [FailureCount: Int] = [:]
            for (item, ending) in group {
                var ending = ending
                if case .done(let completion) = ending, try !record.hasFiles(of: completion, in: db) {
                    finished.vanished.insert(item.id)
                    ending = .release
                }
                try moves.announce(item.id, to: ending.state)
                guard try Self.end(item, ending, now: now, in: db) else {
                    finished.fencedOut.insert(item.id)
                    continue
                }
                if item.deaths > 0 { try Self.acquit(item, ending, in: db) }
                moves.count(item.job, from: .active, to: ending.counter, bytes: ending.bytes)
                if let lastTry = item.lastTry { try Self.save(lastTry, item: item.id, in: db) }
                if let failed = ending.failedTry, failed.hasAsked {
                    if failed.failure.isOfHost {
                        failures[FailureCount(host: failed.host(of: item), failure: failed.failure), default: 0] += 1
                    }
                    if let time = failed.blocksHostUntil {
                        try Self.block(
                            host: failed.host(of: item), until: now.steadily(time), now: now.steady, in: db)
                    }
                }
                if case .done(let completion) = ending { try record.add(completion, of: item, in: db) }
            }
            try Self.count(failures, now: now.wall, in: db)
            try record.addUp(in: db)
            if let room {
                finished.counted = record.added.filter { room.hashes.contains($0.key) }
                let bytes = finished.counted.values.reduce(0, +)
                if bytes > 0 { try Self.giveBack(bytes, of: room.worker, in: db) }
            }
            try moves.addUp(in: db)
            return finished
        }
    }

    /// Now by the machine's clock, as people see it, and by the one that doesn't jump, which waits go by.
    private struct Moment {
        let wall: Int64
        let steady: Int64

        func steadily(_ time: Int64) -> Int64 { time - (wall - steady) }
    }

    /// An item that its worker has survived is no longer suspected of killing workers.
    private static func acquit(_ item: ClaimedItem, _ ending: ItemEnding, in db: Database) throws {
        switch ending {
        case .wait, .release: return
        case .done, .failed, .blacklisted, .retry:
            try db.cachedStatement(sql: "UPDATE items SET deaths = 0 WHERE id = ?").execute(arguments: [item.id])
        }
    }

    /// - Returns: whether the item was still ours to end.
    private static func end(_ item: ClaimedItem, _ ending: ItemEnding, now: Moment, in db: Database) throws -> Bool {
        switch ending {
        case .done(let completion):
            return try complete(item, completion, now: now, in: db)
        case .failed(let failure):
            guard try fail(item, failure, blacklisted: false, tries: 1, now: now.wall, in: db) else { return false }
            let own = failure.failure.blacklistDuration
            if let duration = failure.isListed.map({ $0 ? own ?? FailureClass.day : nil }) ?? own {
                try blacklist(item, failure: failure, until: now.steady + duration, now: now.wall, in: db)
            }
            return true
        case .blacklisted(let entry):
            let failure = FailureRecord(entry.failure, "On the blacklist: \(entry.message ?? entry.failure.rawValue)")
            return try fail(item, failure, blacklisted: true, tries: 0, now: now.wall, in: db)
        case .retry(let time, let failure, let blockingHost):
            if blockingHost {
                try block(host: failure.host(of: item), until: now.steadily(time), now: now.steady, in: db)
            }
            return try delay(item, until: now.steadily(time), failure: failure, in: db)
        case .wait(let time, let host, let reason):
            return try update(
                "state = 'delayed', lease = NULL, run_at = ?, waits_for = ?, message = ifnull(?, message)",
                [now.steadily(time), host, reason], item, in: db)
        case .release:
            return try update("state = 'queued', lease = NULL", [], item, in: db)
        }
    }

    private static func complete(
        _ item: ClaimedItem, _ completion: Completion, now: Moment, in db: Database,
    ) throws -> Bool {
        let update = try RowStatement(
            """
            UPDATE items SET state = 'done', lease = NULL, attempts = attempts + ?, class = NULL, http_status = NULL,
                message = NULL, cached = ?, source = ?, bytes = ?, finished_at = ?
            WHERE id = ? AND \(isOurs)
            """, in: db)
        try update.run(
            completion.isCached ? 0 : 1, completion.isCached, completion.source.hash, completion.source.size, now.wall,
            item.id, item.lease)
        guard db.changesCount > 0 else { return false }
        try save(completion.source, replacing: completion.isCached ? item.source : nil, now: now.steady, in: db)
        for rendition in completion.renditions {
            try save(rendition, item: item.id, in: db)
        }
        for variant in completion.newVariants { try save(variant, now: now.wall, in: db) }
        let isConfirmed = item.source.map { $0.fetchedAt != completion.source.fetchedAt } ?? false
        if !completion.isCached || isConfirmed { try unblacklist(key: item.key, in: db) }
        return true
    }

    private static func fail(
        _ item: ClaimedItem, _ failure: FailureRecord, blacklisted: Bool, tries: Int, now: Int64, in db: Database,
    ) throws -> Bool {
        try update(
            """
            state = 'failed', lease = NULL, attempts = attempts + ?, class = ?, http_status = ?, message = ?,
            blacklisted = ?, finished_at = ?
            """,
            [tries, failure.failure.rawValue, failure.httpStatus, failure.message, blacklisted, now], item, in: db,
        )
    }

    private static func delay(
        _ item: ClaimedItem, until time: Int64, failure: FailureRecord, in db: Database,
    ) throws -> Bool {
        try update(
            """
            state = 'delayed', lease = NULL, run_at = ?, waits_for = ?, attempts = attempts + 1, class = ?,
            http_status = ?, message = ?
            """,
            [time, failure.host(of: item), failure.failure.rawValue, failure.httpStatus, failure.message], item, in: db,
        )
    }

    /// The fence: nothing is changed unless the item is still active under our lease.
    private static let isOurs = "state = 'active' AND lease = ?"

    private static func update(
        _ assignments: String, _ values: StatementArguments, _ item: ClaimedItem, in db: Database,
    ) throws -> Bool {
        let statement = try db.cachedStatement(
            sql: "UPDATE items SET \(assignments) WHERE id = ? AND \(isOurs)")
        try statement.execute(arguments: values + [item.id, item.lease])
        return db.changesCount > 0
    }
}

extension ItemEnding {
    /// A try that failed just now.
    fileprivate var failedTry: FailureRecord? {
        switch self {
        case .failed(let failure), .retry(_, let failure, _): failure
        case .done(let completion): completion.concealed
        case .blacklisted, .wait, .release: nil
        }
    }
}

extension FailureRecord {
    fileprivate func host(of item: ClaimedItem) -> String { host ?? URLText.host(item.url) }
}
