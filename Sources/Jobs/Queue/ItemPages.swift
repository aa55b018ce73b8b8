public import Core

/// Selects a page of a job's items.
public struct ItemQuery: Sendable {
    /// A state as results show it: also `cached` and `blacklisted`; nil for all.
    public var state: String?
    public var failure: FailureClass?
    /// A part of the URL.
    public var text: String?
    /// Nil for the order of the items' ids; ``SortedItems`` has the pages of other orders.
    public var sort: Sort?
    /// The newest first; without ``sort`` only.
    public var isDescending = false
    /// Continues where ``ItemPage/next`` says; nil for the first page.
    public var after: Int64?
    /// From 1 to 500.
    public var limit = 50

    public init() {}

    /// Orders by a column, the largest value first.
    public enum Sort: String, CaseIterable, Sendable {
        case bytes, tries, ended

        var column: String {
            switch self {
            case .bytes: "bytes"
            case .tries: "attempts"
            case .ended: "finished_at"
            }
        }
    }

    /// The states that ``state`` may name.
    public static let states = ItemState.allCases.map(\.rawValue) + ["cached", "blacklisted"]
}

/// An item as lists show it.
public struct ItemLine: Hashable, Sendable, Encodable {
    public let id: Int64
    public let job: JobID
    public internal(set) var url: String
    /// Also `cached` and `blacklisted`.
    public let state: String
    public let attempts: Int
    public let failure: String?
    public let httpStatus: Int?
    public let message: String?
    /// Bytes of the source.
    public let bytes: Int64?
    public let startedAt: WallTime?
    public let finishedAt: WallTime?
    /// When it is tried again.
    public let runAt: WallTime?

    public func hidden(by redaction: Redaction) -> ItemLine {
        var line = self
        line.url = redaction.shown(url)
        return line
    }

    init(row: Row, _ now: Moment) {
        id = row["id"]
        job = row["job"]
        url = row["url"]
        state = row["shown"]
        attempts = row["attempts"]
        failure = row["class"]
        httpStatus = row["http_status"]
        message = row["message"]
        bytes = row["bytes"]
        startedAt = row.wall("started_at")
        finishedAt = row.wall("finished_at")
        runAt = row.steady("run_at").map { now.wall($0) }
    }
}

/// A page of a job's items.
public struct ItemPage: Sendable, Encodable {
    public var items: [ItemLine]
    /// Where the next page continues; nil at the end. A page may have fewer items than its limit, or none, and still be
    /// followed by others, since each looks at a bounded number of items.
    public let next: Int64?
    /// If the page is not known yet: how much of the job has been read to sort its items, from 0 to 1. Nil for a page.
    public var progress: Double?
}

extension JobReports {
    /// Maximum items that one page reads, which takes some 100 ms.
    static let maxConsidered = 50_000

    /// The state that users see.
    static let shown = """
        CASE WHEN state = 'done' AND cached <> 0 THEN 'cached' WHEN state = 'failed' AND blacklisted <> 0 THEN 'blacklisted'
            ELSE state END
        """

    static let isWanted = """
        (?4 IS NULL OR \(shown) = ?4) AND (?5 IS NULL OR class = ?5) AND (?6 IS NULL OR instr(lower(url), ?6) > 0)
        """

    /// A page of a job's items, in the order of their numbers. It reads a bounded number of items, so that no page
    /// takes long; if few items match the query, they are spread over several pages.
    public func items(job: JobID, _ query: ItemQuery) async throws(JobsError) -> ItemPage {
        let reading = gate.reading
        let limit = max(1, min(query.limit, 500))
        return try await gate.read { db in
            let now = try reading.moment(in: db)
            let (compare, order) = query.isDescending ? ("<", "DESC") : (">", "ASC")
            let upTo = query.isDescending ? ">=" : "<="
            let start = query.after ?? (query.isDescending ? .max : -1)
            guard
                let end = try Self.end(
                    of: job, after: start, isDescending: query.isDescending, limit: Self.maxConsidered, in: db)
            else { return ItemPage(items: [], next: nil) }
            let items = try db.rows(
                """
                SELECT *, \(Self.shown) AS shown FROM items WHERE job = ?1 AND id \(compare) ?2 AND id \(upTo) ?3
                    AND \(Self.isWanted)
                ORDER BY id \(order) LIMIT ?7
                """,
                [job, start, end, query.state, query.failure?.rawValue, query.text?.lowercased(), limit]
            ).map { ItemLine(row: $0, now) }
            let last = items.count == limit ? items[limit - 1].id : end
            let hasMore = try db.exists("SELECT 1 FROM items WHERE job = ? AND id \(compare) ?", [job, last])
            return ItemPage(items: items, next: hasMore ? last : nil)
        }
    }

    /// The id at which a slice of a job's items ends, read from the index of items by job alone; nil behind the last item.
    static func end(
        of job: JobID, after start: Int64, isDescending: Bool = false, limit: Int, in db: Connection,
    ) throws -> Int64? {
        let (compare, order, furthest) = isDescending ? ("<", "DESC", "min") : (">", "ASC", "max")
        let rest = "FROM items WHERE job = ? AND id \(compare) ?"
        // Rows that OFFSET skips cost half as much as rows that a subquery returns.
        return try db.integer("SELECT id \(rest) ORDER BY id \(order) LIMIT 1 OFFSET \(limit - 1)", [job, start])
            ?? db.integer("SELECT \(furthest)(id) \(rest)", [job, start])
    }

    /// One item; nil if there is none with this number.
    public func item(_ id: Int64) async throws(JobsError) -> ItemLine? {
        let reading = gate.reading
        return try await gate.read { db in
            let now = try reading.moment(in: db)
            return try db.row(
                "SELECT *, \(Self.shown) AS shown FROM items WHERE id = ? AND job NOT IN (SELECT job FROM job_additions)",
                [id]
            )
            .map { ItemLine(row: $0, now) }
        }
    }
}
