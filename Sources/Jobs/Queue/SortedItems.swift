internal import Core

/// Pages of a job's items in the order of a column.
///
/// No index has that order, since it would slow down every write of an item. The first request for an order reads the job
/// in slices and keeps the ids of the ``maxShown`` items that come first; each slice is asked only for items that come
/// before the last of these. A million items take 150 ms. If it takes longer than ``patience``, the request returns an
/// empty page with its ``ItemPage/progress``, and the next one continues. Further pages are read by id.
public actor SortedItems {
    /// Maximum items of an order that pages show.
    public static let maxShown = 10_000

    private struct Order: Hashable {
        let job: JobID
        let sort: ItemQuery.Sort
        let state: String?
        let failure: FailureClass?
        let text: String?
    }

    private struct Reading {
        var ids: [(id: Int64, value: Int64)] = []
        /// The last id that was read; nil at the end of the job.
        var last: Int64? = -1
        var changed = ContinuousClock.now

        /// The value that an item must exceed to be among those that come first; nil as long as all are.
        var threshold: Int64? { ids.count < maxShown ? nil : ids.last?.value }

        /// Keeps the items that come first: those with the largest values, then those with the smallest ids.
        ///
        /// - Parameter more: in this order; their ids are larger than all that were read before.
        mutating func add(_ more: [(id: Int64, value: Int64)]) {
            guard !more.isEmpty else { return }
            let (old, count) = (ids, min(ids.count + more.count, maxShown))
            ids.removeAll(keepingCapacity: true)
            var (first, second) = (old[...], more[...])
            while ids.count < count {
                if let next = second.first, first.first.map({ $0.value < next.value }) ?? true {
                    ids.append(second.removeFirst())
                } else {
                    ids.append(first.removeFirst())
                }
            }
        }
    }

    private let reports: JobReports
    private let slice: Int
    private let patience: Duration
    private let lifetime: Duration
    /// A few, since each person at a dashboard looks at one.
    private var orders: [Order: Reading] = [:]
    private static let maxOrders = 8

    /// - Parameters:
    ///   - slice: maximum items that one statement reads; 62,500 take some 10 ms.
    ///   - patience: how long a request reads at most, apart from its last slice.
    ///   - lifetime: how long an order is used after it was read; items that ended since then are not in it.
    public init(
        _ reports: JobReports, slice: Int = 62_500, patience: Duration = .milliseconds(170),
        lifetime: Duration = .seconds(30),
    ) {
        self.reports = reports
        self.slice = slice
        self.patience = patience
        self.lifetime = lifetime
    }

    /// A page in the query's ``ItemQuery/sort``. ``ItemQuery/after`` is the number of items on the pages before it.
    public func page(job: JobID, _ query: ItemQuery, sortedBy sort: ItemQuery.Sort) async throws(JobsError) -> ItemPage
    {
        let order = Order(job: job, sort: sort, state: query.state, failure: query.failure, text: query.text)
        let start = Int(clamping: max(0, query.after ?? 0))
        orders = orders.filter { $0.value.changed.duration(to: .now) < lifetime }
        // While a request reads the job for an order, another request for the same order begins a reading of its own.
        var reading = orders.removeValue(forKey: order) ?? Reading()
        let began = ContinuousClock.now
        while let last = reading.last {
            let part = try await reports.slice(
                job: job, query, sort, after: last, limit: slice, above: reading.threshold)
            reading.add(part.items)
            reading.last = part.last
            reading.changed = .now
            if let last = part.last, began.duration(to: .now) >= patience {
                keep(reading, as: order)
                return ItemPage(items: [], next: Int64(start), progress: try await reports.share(of: job, upTo: last))
            }
        }
        keep(reading, as: order)
        let ids = reading.ids.dropFirst(start).prefix(max(1, min(query.limit, 500))).map(\.id)
        let end = start.addingReportingOverflow(ids.count).partialValue
        return ItemPage(
            items: try await reports.items(ids: ids), next: end < reading.ids.count && !ids.isEmpty ? Int64(end) : nil)
    }

    private func keep(_ reading: Reading, as order: Order) {
        if orders.count >= Self.maxOrders, let oldest = orders.min(by: { $0.value.changed < $1.value.changed }) {
            orders[oldest.key] = nil
        }
        orders[order] = reading
    }
}

extension JobReports {
    /// The ids and sorted values of the next items that a query wants and that come first among them; the last id that
    /// was read, or nil at the end.
    ///
    /// - Parameter threshold: the value that items must exceed; nil for all.
    fileprivate func slice(
        job: JobID, _ query: ItemQuery, _ sort: ItemQuery.Sort, after: Int64, limit: Int, above threshold: Int64?,
    ) async throws(JobsError) -> (items: [(id: Int64, value: Int64)], last: Int64?) {
        try await gate.read { db in
            guard let range = try Self.range(of: job, after: after, limit: limit, in: db) else { return ([], nil) }
            // Items without a value come last. Any program may have written text or bytes in place of a number.
            let value = "coalesce(CAST(\(sort.column) AS INTEGER), \(Int64.min))"
            let slice = try RowStatement(
                """
                SELECT id, \(value) AS value, \(Self.shown) AS shown FROM items \(range.isDense ? "NOT INDEXED" : "")
                WHERE job = ?1 AND id > ?2 AND id <= ?3 AND \(Self.isWanted) AND (?7 IS NULL OR \(value) > ?7)
                ORDER BY value DESC, id LIMIT \(SortedItems.maxShown)
                """, in: db)
            let items = try slice.all(
                job, after, range.end, query.state, query.failure?.rawValue, query.text?.lowercased(), threshold
            ) { (id: $0.integer(0), value: $0.integer(1)) }
            return (items, range.end)
        }
    }

    /// The id at which a slice of a job's items ends; nil behind the last item.
    ///
    /// Where most ids of the job's range are its own, they are read one after the other, without the index of items by
    /// job: that takes half as long. Jobs whose items were added in turns with those of others are read by the index.
    private static func range(
        of job: JobID, after: Int64, limit: Int, in db: Connection,
    ) throws -> (end: Int64, isDense: Bool)? {
        guard let first = try db.integer("SELECT min(id) FROM items WHERE job = ?", [job]),
            let last = try db.integer("SELECT max(id) FROM items WHERE job = ?", [job]), after < last
        else { return nil }
        let total = try db.integer("SELECT total FROM jobs WHERE id = ?", [job]) ?? 0
        // Ids are at most 2^52, unless a shell has switched the table's triggers off.
        let isDense =
            (0...Schema.largestItemID).contains(first) && last <= Schema.largestItemID
            && last - first <= min(max(0, total), 1 << 50) * 2
        if isDense { return (min(last, max(first - 1, after) + Int64(limit)), true) }
        return try end(of: job, after: after, limit: limit, in: db).map { ($0, false) }
    }

    /// The items with these ids, in their order; those that are gone are left out.
    fileprivate func items(ids: [Int64]) async throws(JobsError) -> [ItemLine] {
        let reading = gate.reading
        return try await gate.read { db in
            let now = try reading.moment(in: db)
            return try ids.compactMap { id in
                try db.row("SELECT *, \(Self.shown) AS shown FROM items WHERE id = ?", [id]).map {
                    ItemLine(row: $0, now)
                }
            }
        }
    }

    /// Which share of a job's items has ids up to `last`, as if its ids were without gaps; from 0 to 1.
    fileprivate func share(of job: JobID, upTo last: Int64) async throws(JobsError) -> Double {
        try await gate.read { db in
            guard let first = try db.integer("SELECT min(id) FROM items WHERE job = ?", [job]),
                let end = try db.integer("SELECT max(id) FROM items WHERE job = ?", [job]), first < end
            else { return 1 }
            return min(max((Double(last) - Double(first)) / (Double(end) - Double(first)), 0), 1)
        }
    }
}
