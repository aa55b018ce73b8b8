internal import GRDB

/// What workers are held to, as far as somebody has said so in the database; the rest is what they were started with.
public struct LimitsRecord: Hashable, Sendable, Codable {
    /// `*` for the worker as a whole, and for hosts without a row of their own.
    public var host: String
    public var concurrency: Int?
    public var perHost: Int?
    /// Requests a second.
    public var rate: Double?
    public var burst: Int?

    public static let everyHost = "*"

    public init(
        host: String, concurrency: Int? = nil, perHost: Int? = nil, rate: Double? = nil, burst: Int? = nil,
    ) {
        self.host = host
        self.concurrency = concurrency
        self.perHost = perHost
        self.rate = rate
        self.burst = burst
    }

    enum CodingKeys: String, CodingKey {
        case host, concurrency, rate, burst
        case perHost = "per_host"
    }
}

extension JobStore {
    public func limits() async throws(JobsError) -> [LimitsRecord] {
        try await read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM limits ORDER BY host").map { row in
                LimitsRecord(
                    host: row.text("host") ?? "", concurrency: row.number("concurrency").map { Int(clamping: $0) },
                    perHost: row.number("per_host").map { Int(clamping: $0) }, rate: row.real("rate"),
                    burst: row.number("burst").map { Int(clamping: $0) })
            }
        }
    }

    /// Changes what is given, and leaves the rest as it was.
    public func setLimits(_ limits: LimitsRecord) async throws(JobsError) {
        try await write { db in
            try db.execute(
                sql: """
                    INSERT INTO limits (host, concurrency, per_host, rate, burst) VALUES (?, ?, ?, ?, ?)
                    ON CONFLICT (host) DO UPDATE SET concurrency = ifnull(excluded.concurrency, concurrency),
                        per_host = ifnull(excluded.per_host, per_host), rate = ifnull(excluded.rate, rate),
                        burst = ifnull(excluded.burst, burst)
                    """,
                arguments: [
                    limits.host.lowercased(), limits.concurrency, limits.perHost, limits.rate, limits.burst,
                ])
        }
    }

    /// Back to what workers were started with.
    ///
    /// - Returns: whether there was anything.
    public func resetLimits(host: String) async throws(JobsError) -> Bool {
        try await write { db in
            try db.execute(sql: "DELETE FROM limits WHERE host = ?", arguments: [host.lowercased()])
            return db.changesCount > 0
        }
    }
}
