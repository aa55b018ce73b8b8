internal import Core

/// The new rows of a group's items, sorted by how the items end: each way has its statement.
struct EndedRows {
    /// An item, its place in the group, and the details of its end.
    struct Row<Details> {
        let place: Int
        let item: ClaimedItem
        let details: Details
    }

    struct Failed {
        let failure: Failure
        /// Whether the URL was on the blacklist, so that it was not tried.
        let isListed: Bool
    }

    private let count: Int
    private let now: Moment
    private let statements: RowStatements
    private var done: [Row<Completion>] = []
    private var failed: [Row<Failed>] = []
    private var fallenBack: [Row<Failure>] = []
    private var retried: [Row<(time: WallTime, failure: Failure)>] = []
    private var waiting: [Row<(time: WallTime, host: String?, reason: String?)>] = []
    private var released: [Row<Void>] = []

    init(_ group: [GroupEnding.One], now: Moment, _ statements: RowStatements) {
        self.now = now
        self.statements = statements
        count = group.count
        for (place, (item, ending)) in group.enumerated() {
            switch ending {
            case .done(let completion): done.append(Row(place: place, item: item, details: completion))
            case .failed(let failure):
                failed.append(Row(place: place, item: item, details: Failed(failure: failure, isListed: false)))
            case .blacklisted(let entry):
                let failure = Failure(entry.failure, "On the blacklist: \(entry.message ?? entry.failure.rawValue)")
                failed.append(Row(place: place, item: item, details: Failed(failure: failure, isListed: true)))
            case .fallBack(let failure): fallenBack.append(Row(place: place, item: item, details: failure))
            case .retry(let time, let failure, _):
                retried.append(Row(place: place, item: item, details: (time, failure)))
            case .wait(let time, let host, let reason):
                waiting.append(Row(place: place, item: item, details: (time, host, reason)))
            case .release: released.append(Row(place: place, item: item, details: ()))
            }
        }
    }

    /// - Returns: for each item of the group, whether its lease still held it and its row was changed.
    func move(by moves: JobCounterBatch) throws -> [Bool] {
        var isMoved = Array(repeating: false, count: count)
        func move<Details, each Value: RowValue>(
            _ rows: [Row<Details>], to state: ItemState, _ name: StaticString, _ assignments: @autoclosure () -> String,
            _ values: (Row<Details>) -> (repeat each Value),
        ) throws {
            guard !rows.isEmpty else { return }
            let update = try statements(
                name, "UPDATE items SET \(assignments()) WHERE id = ? AND \(JobQueue.isOurs)")
            let moved = try JobQueue.change(group: rows.map { $0.item.id }, to: state, in: statements.db) {
                try moves.move(rows, to: state, by: update, id: { $0.item.id }, values)
            }
            for (row, moved) in zip(rows, moved) { isMoved[row.place] = moved }
        }
        try move(
            done, to: .done, "complete items",
            """
            state = 'done', lease = NULL, run_at = NULL, attempts = \(ItemSchema.attempts) + ?, class = NULL,
            http_status = NULL, message = NULL, cached = ?, bytes_from = ?, source = ?, bytes = ?, finished_at = ?
            """
        ) { row in
            let completion = row.details
            return (
                completion.isCached ? 0 : 1, completion.isCached, completion.origin.stored, completion.source.hash,
                completion.source.size, now.wall, row.item.id, row.item.lease
            )
        }
        try move(
            failed, to: .failed, "fail items",
            """
            state = 'failed', lease = NULL, run_at = NULL, attempts = \(ItemSchema.attempts) + ?, class = ?,
            http_status = ?, message = ?, blacklisted = ?, finished_at = ?
            """
        ) { row in
            let failure = row.details.failure
            return (
                row.details.isListed ? 0 : 1, failure.failureClass.rawValue, failure.httpStatus, failure.message,
                row.details.isListed, now.wall, row.item.id, row.item.lease
            )
        }
        try move(
            fallenBack, to: .queued, "queue items for their fallbacks",
            """
            state = 'queued', lease = NULL, attempts = 0, fallback = coalesce(fallback, 0) + 1, class = ?,
            http_status = ?, message = ?
            """
        ) { row in
            let failure = row.details
            return (
                failure.failureClass.rawValue, failure.httpStatus, failure.message, row.item.id, row.item.lease
            )
        }
        try move(
            retried, to: .delayed, "delay items",
            """
            state = 'delayed', lease = NULL, run_at = ?, waits_for = ?, attempts = \(ItemSchema.attempts) + 1, class = ?,
            http_status = ?, message = ?
            """
        ) { row in
            let failure = row.details.failure
            return (
                now.steady(row.details.time), failure.host(of: row.item), failure.failureClass.rawValue,
                failure.httpStatus, failure.message, row.item.id, row.item.lease
            )
        }
        try move(
            waiting, to: .delayed, "let items wait",
            "state = 'delayed', lease = NULL, run_at = ?, waits_for = ?, message = coalesce(?, message)"
        ) { row in
            (now.steady(row.details.time), row.details.host, row.details.reason, row.item.id, row.item.lease)
        }
        try move(released, to: .queued, "release items", "state = 'queued', lease = NULL") { row in
            (row.item.id, row.item.lease)
        }
        return isMoved
    }
}

extension JobQueue {
    /// The fence: a row changes only if the item is still active under this lease.
    static let isOurs = "state = 'active' AND lease = ?"

    static func isOurs(_ item: ClaimedItem, in db: Connection) throws -> Bool {
        try db.exists("SELECT 1 FROM items WHERE id = ? AND \(isOurs)", [item.id, item.lease])
    }
}

extension ItemEnding {
    /// The failure of a try that was made just now.
    var failedTry: Failure? {
        switch self {
        case .failed(let failure), .retry(_, let failure, _), .fallBack(let failure): failure
        case .done(let completion): completion.concealed
        case .blacklisted, .wait, .release: nil
        }
    }

    /// The failure that may put the URL on the blacklist.
    var listed: Failure? {
        switch self {
        case .failed(let failure): failure
        case .fallBack(let failure): failure.hasAsked ? failure : nil
        case .done, .blacklisted, .retry, .wait, .release: nil
        }
    }
}

extension Failure {
    func host(of item: ClaimedItem) -> String { host ?? URLText.host(item.url) }
}
