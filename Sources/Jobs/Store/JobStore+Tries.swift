internal import GRDB

/// One request and what came of it. Times in microseconds; what didn't happen or isn't known is nil.
public struct TryRecord: Hashable, Sendable, Codable {
    /// UTC milliseconds.
    public var at: Int64
    /// Nil for a success.
    public var failure: String?
    public var httpStatus: Int?
    public var message: String?
    /// Bytes of the body as they were sent.
    public var received: Int64?
    /// Announced bytes that were not waited for.
    public var saved: Int64?
    public var redirects: Int?
    public var address: String?
    public var httpVersion: String?
    public var dns: Int64?
    public var connect: Int64?
    public var tls: Int64?
    public var firstByte: Int64?
    public var total: Int64?

    public init(at: Int64) { self.at = at }

    enum CodingKeys: String, CodingKey {
        case at, message, received, saved, redirects, address, dns, connect, tls, total
        case failure = "class", httpStatus = "http_status", httpVersion = "http_version", firstByte = "first_byte"
    }
}

/// How far a transfer has come.
public struct TransferProgress: Hashable, Sendable {
    public let item: Int64
    public let received: Int64
    public let expected: Int64?

    public init(item: Int64, received: Int64, expected: Int64?) {
        self.item = item
        self.received = received
        self.expected = expected
    }
}

extension JobStore {
    /// Every request for a URL that is remembered, the latest first.
    public func tries(ofURL url: String, limit: Int = 100) async throws(JobsError) -> [TryRecord] {
        try await read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT tries.* FROM items CROSS JOIN tries ON tries.item = items.id WHERE items.url = ?
                    ORDER BY tries.at DESC LIMIT ?
                    """,
                arguments: [url, limit]
            ).map(tryRecord)
        }
    }

    static func save(_ record: TryRecord, item: Int64, in db: Database) throws {
        let insert = try RowStatement(
            """
            INSERT OR REPLACE INTO tries (item, at, class, http_status, message, received, saved, redirects, address,
                http_version, dns, connect, tls, first_byte, total)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """, in: db)
        try insert.run(
            item, record.at, record.failure, record.httpStatus, record.message, record.received, record.saved,
            record.redirects, record.address, record.httpVersion, record.dns, record.connect, record.tls,
            record.firstByte, record.total)
    }

    /// Replaces what the worker said before.
    public func save(progress: [TransferProgress], worker: Int64) async throws(JobsError) {
        let now = now()
        try await write { db in
            try db.execute(sql: "DELETE FROM transfer_progress WHERE worker = ?", arguments: [worker])
            let insert = try db.cachedStatement(
                sql: """
                    INSERT OR REPLACE INTO transfer_progress (worker, item, received, expected, updated_at)
                    VALUES (?, ?, ?, ?, ?)
                    """)
            for one in progress {
                try insert.execute(arguments: [worker, one.item, one.received, one.expected, now])
            }
        }
    }
}

private func tryRecord(_ row: Row) -> TryRecord {
    var record = TryRecord(at: row["at"])
    record.failure = row["class"]
    record.httpStatus = row["http_status"]
    record.message = row["message"]
    record.received = row["received"]
    record.saved = row["saved"]
    record.redirects = row["redirects"]
    record.address = row["address"]
    record.httpVersion = row["http_version"]
    record.dns = row["dns"]
    record.connect = row["connect"]
    record.tls = row["tls"]
    record.firstByte = row["first_byte"]
    record.total = row["total"]
    return record
}
