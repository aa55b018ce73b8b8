public import Core

/// A row of the view `results`: one file, or one failure, of a job.
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
    /// `#rrggbb`. This field and the next three are about the source.
    public let dominantColour: String?
    public let blurHash: String?
    /// Base64.
    public let thumbHash: String?
    /// Sixteen hexadecimal digits.
    public let perceptualHash: String?
    /// This field and the next four are about the source.
    public let sourceFormat: String?
    /// In pixels, upright.
    public let sourceWidth: Int?
    public let sourceHeight: Int?
    /// 1 for a still.
    public let frames: Int?
    public let hasAlpha: Bool?
    /// The damage of a source that was decoded anyway (`accept-damaged`).
    public let damage: String?
    /// The scale in the source's name: 2 for `a@2x.png`, 3 for `a@3x.png`, else 1.
    public let scale: Int
    /// For an item with fallbacks: the URL that delivered the picture.
    public internal(set) var servedURL: String?
    /// Where the source's bytes came from; nil for an item without a result.
    public let bytesFrom: SourceOrigin?
    /// The item's JSON object in one line. It is not among the coded values, where it would be text.
    public private(set) var meta: String?

    enum CodingKeys: String, CodingKey {
        case job, item, url, state, cached, variant, format, width, height, size, blob, path, message, frames
        case damage, scale
        case sourceFormat = "source_format", sourceWidth = "source_width", sourceHeight = "source_height"
        case hasAlpha = "has_alpha"
        case failure = "class", httpStatus = "http_status", finishedAt = "finished_at"
        case dominantColour = "dominant_colour", blurHash = "blurhash", thumbHash = "thumbhash"
        case perceptualHash = "phash", servedURL = "served_url", bytesFrom = "bytes_from"
    }

    init(row: Row) {
        job = row["job"]
        item = row["item"]
        url = row["url"]
        state = ItemState(rawValue: row["state"]) ?? .failed
        cached = row["cached"]
        variant = row["variant"]
        format = row["format"]
        width = row["width"]
        height = row["height"]
        size = row["size"]
        blob = row["blob"]
        path = row["path"]
        failure = row["class"]
        httpStatus = row["http_status"]
        message = row["message"]
        finishedAt = row["finished_at"]
        dominantColour = row["dominant_colour"]
        blurHash = row["blurhash"]
        thumbHash = row["thumbhash"]
        perceptualHash = row["phash"]
        sourceFormat = row["source_format"]
        sourceWidth = row["source_width"]
        sourceHeight = row["source_height"]
        frames = row["frames"]
        hasAlpha = row["has_alpha"]
        damage = row["damage"]
        scale = row["scale"]
        servedURL = row["served_url"]
        bytesFrom = SourceOrigin(rawValue: row["bytes_from"])
        meta = row["meta"]
    }

    /// The columns of CSV, each with the text of a row's value.
    public static let columns: [(name: String, text: @Sendable (ResultRow) -> String?)] = [
        ("job", { "\($0.job)" }), ("item", { "\($0.item)" }), ("url", { $0.url }), ("state", { $0.state.rawValue }),
        ("cached", { digit($0.cached) }), ("variant", { $0.variant }), ("format", { $0.format }),
        ("width", { $0.width?.description }), ("height", { $0.height?.description }),
        ("size", { $0.size?.description }), ("path", { $0.path }), ("class", { $0.failure }),
        ("message", { $0.message }), ("dominant_colour", { $0.dominantColour }), ("blurhash", { $0.blurHash }),
        ("thumbhash", { $0.thumbHash }), ("phash", { $0.perceptualHash }), ("source_format", { $0.sourceFormat }),
        ("source_width", { $0.sourceWidth?.description }), ("source_height", { $0.sourceHeight?.description }),
        ("frames", { $0.frames?.description }), ("has_alpha", { $0.hasAlpha.map(digit) }), ("damage", { $0.damage }),
        ("scale", { "\($0.scale)" }),
        ("served_url", { $0.servedURL }), ("meta", { $0.meta }), ("bytes_from", { $0.bytesFrom?.rawValue }),
    ]

    private static func digit(_ flag: Bool) -> String { flag ? "1" : "0" }
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
    public let runAt: WallTime?
    /// UTC milliseconds.
    public let finishedAt: Int64?

    enum CodingKeys: String, CodingKey {
        case job, item, state, attempts, cached, message
        case failure = "class", runAt = "run_at", finishedAt = "finished_at"
    }

    init(row: Row, _ now: Moment) {
        job = row["job"]
        item = row["id"]
        state = ItemState(rawValue: row["state"]) ?? .failed
        attempts = row["attempts"]
        cached = row["cached"]
        failure = row["class"]
        message = row["message"]
        runAt = (row["run_at"] as Int64?).map { now.wall(SteadyTime(clamping: $0)) }
        finishedAt = row["finished_at"]
    }
}

/// One request and its result. Durations in microseconds; nil for a step that was skipped.
public struct TryRecord: Hashable, Sendable, Codable {
    public var at: WallTime
    /// Nil for a success.
    public var failure: String?
    public var httpStatus: Int?
    public var message: String?
    /// Bytes of the body as transferred.
    public var received: Int64?
    /// Announced bytes that the worker did not download, since it rejected the file early.
    public var saved: Int64?
    public var redirects: Int?
    public var address: String?
    public var httpVersion: String?
    public var dns: Int64?
    public var connect: Int64?
    public var tls: Int64?
    public var firstByte: Int64?
    public var total: Int64?

    public init(at: WallTime) { self.at = at }

    enum CodingKeys: String, CodingKey {
        case at, message, received, saved, redirects, address, dns, connect, tls, total
        case failure = "class", httpStatus = "http_status", httpVersion = "http_version", firstByte = "first_byte"
    }

    init(row: Row) {
        at = WallTime(milliseconds: row["at"])
        failure = row["class"]
        httpStatus = row["http_status"]
        message = row["message"]
        received = row["received"]
        saved = row["saved"]
        redirects = row["redirects"]
        address = row["address"]
        httpVersion = row["http_version"]
        dns = row["dns"]
        connect = row["connect"]
        tls = row["tls"]
        firstByte = row["first_byte"]
        total = row["total"]
    }
}

/// The progress of a transfer.
public struct TransferProgress: Hashable, Sendable {
    public let item: Int64
    public let origin: SourceOrigin
    /// Bytes.
    public let received: Int64
    /// Bytes in all; nil if that is unknown.
    public let expected: Int64?

    public init(item: Int64, origin: SourceOrigin, received: Int64, expected: Int64?) {
        self.item = item
        self.origin = origin
        self.received = received
        self.expected = expected
    }
}
