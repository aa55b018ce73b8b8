internal import GRDB

/// One file, or one failure, of a job: a row of the view `results`.
public struct ResultRow: Hashable, Sendable, Codable {
    public let job: JobID
    public let item: Int64
    public internal(set) var url: String
    public let state: ItemState
    public let cached: Bool
    public let variant: String?
    public let format: String?
    public let width: Int?
    public let height: Int?
    public let size: Int64?
    public let blob: String?
    /// Relative to the cache's folder.
    public let path: String?
    public let failure: String?
    public let httpStatus: Int?
    public let message: String?
    public let finishedAt: String?
    /// Of the source, as the three that follow: `#rrggbb`.
    public let dominantColour: String?
    public let blurHash: String?
    /// Base64.
    public let thumbHash: String?
    /// Sixteen hexadecimal digits.
    public let perceptualHash: String?
    /// Of the source, as the four that follow.
    public let sourceFormat: String?
    /// In pixels, upright.
    public let sourceWidth: Int?
    public let sourceHeight: Int?
    /// 1 for a still.
    public let frames: Int?
    public let hasAlpha: Bool?
    /// What is wrong with a source of which something was made all the same (`accept-damaged`).
    public let damage: String?

    enum CodingKeys: String, CodingKey {
        case job, item, url, state, cached, variant, format, width, height, size, blob, path, message, frames
        case damage
        case sourceFormat = "source_format", sourceWidth = "source_width", sourceHeight = "source_height"
        case hasAlpha = "has_alpha"
        case failure = "class", httpStatus = "http_status", finishedAt = "finished_at"
        case dominantColour = "dominant_colour", blurHash = "blurhash", thumbHash = "thumbhash"
        case perceptualHash = "phash"
    }
}

/// An item as `worker explain` shows it.
public struct ItemRecord: Hashable, Sendable, Codable {
    public let job: JobID
    public let item: Int64
    public let state: ItemState
    public let attempts: Int
    public let cached: Bool
    public let failure: String?
    public let message: String?
    /// UTC milliseconds.
    public let runAt: Int64?
    public let finishedAt: Int64?

    enum CodingKeys: String, CodingKey {
        case job, item, state, attempts, cached, message
        case failure = "class", runAt = "run_at", finishedAt = "finished_at"
    }
}

extension JobStore {
    /// A page of a job's results in the order of its items: whole items, at most `limit` of them after item `after`.
    public func results(job: JobID, after item: Int64, limit: Int) async throws(JobsError) -> [ResultRow] {
        try await read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT * FROM results WHERE job = ? AND item IN
                        (SELECT id FROM items WHERE job = ? AND id > ? AND state IN ('done', 'failed', 'cancelled')
                            ORDER BY id LIMIT ?)
                    ORDER BY item, variant
                    """,
                arguments: [job, job, item, limit],
            ).map(resultRow)
        }
    }

    /// What happened to a URL, the latest first.
    public func history(ofURL url: String, limit: Int = 20) async throws(JobsError) -> [ItemRecord] {
        try await read { db in
            try Row.fetchAll(
                db, sql: "SELECT * FROM items WHERE url = ? ORDER BY id DESC LIMIT ?", arguments: [url, limit],
            ).map(itemRow)
        }
    }
}

private func resultRow(_ row: Row) -> ResultRow {
    let state: String = row["state"]
    return ResultRow(
        job: row["job"], item: row["item"], url: row["url"], state: ItemState(rawValue: state) ?? .failed,
        cached: row["cached"], variant: row["variant"], format: row["format"], width: row["width"],
        height: row["height"], size: row["size"], blob: row["blob"], path: row["path"], failure: row["class"],
        httpStatus: row["http_status"], message: row["message"], finishedAt: row["finished_at"],
        dominantColour: row["dominant_colour"], blurHash: row["blurhash"], thumbHash: row["thumbhash"],
        perceptualHash: row["phash"],
        sourceFormat: row["source_format"],
        sourceWidth: row["source_width"],
        sourceHeight: row["source_height"],
        frames: row["frames"],
        hasAlpha: row["has_alpha"],
        damage: row["damage"],
    )
}

private func itemRow(_ row: Row) -> ItemRecord {
    let state: String = row["state"]
    return ItemRecord(
        job: row["job"], item: row["id"], state: ItemState(rawValue: state) ?? .failed, attempts: row["attempts"],
        cached: row["cached"], failure: row["class"], message: row["message"], runAt: row["run_at"],
        finishedAt: row["finished_at"],
    )
}
