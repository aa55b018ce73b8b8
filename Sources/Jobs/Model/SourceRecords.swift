public import Core

/// The bytes that an origin sent for a URL, as the index has them.
public struct SourceRecord: Hashable, Sendable, Codable {
    public var key: String
    /// SHA-256 of the bytes, lowercase hexadecimal.
    public var hash: String
    public var size: Int64
    /// Whether the cache has the bytes themselves.
    public var isKept: Bool
    public var finalURL: String?
    public var format: String?
    public var width: Int?
    public var height: Int?
    public var frames: Int?
    public var hasAlpha: Bool?
    /// Whether it was stored without decoding its pixels, so that it may be incomplete.
    public var isUnverified: Bool { format != nil && frames == nil }
    /// Whether it can't be decoded completely, and was used anyway.
    public var isDamaged: Bool { looks?.damage != nil }
    /// Nil until its pixels were decoded.
    public var looks: ImagePlaceholders?
    public var etag: String?
    public var lastModified: String?
    /// Nil for a source that was not fetched by HTTP.
    public var http: HTTPFacts?
    public var fetchedAt: WallTime
    /// When to ask the origin again after ``fetchedAt``, for jobs with a ``RecheckRule``, in milliseconds.
    public var recheckAfter: Int64?

    public init(
        key: String, hash: String, size: Int64, isKept: Bool, finalURL: String? = nil, format: String? = nil,
        width: Int? = nil, height: Int? = nil, frames: Int? = nil, hasAlpha: Bool? = nil,
        looks: ImagePlaceholders? = nil, etag: String? = nil, lastModified: String? = nil, http: HTTPFacts? = nil,
        fetchedAt: WallTime,
    ) {
        self.key = key
        self.hash = hash
        self.size = size
        self.isKept = isKept
        self.finalURL = finalURL
        self.format = format
        self.width = width
        self.height = height
        self.frames = frames
        self.hasAlpha = hasAlpha
        self.looks = looks
        self.etag = etag
        self.lastModified = lastModified
        self.http = http
        self.fetchedAt = fetchedAt
    }
}

/// A rendition in the cache index.
public struct VariantRecord: Hashable, Sendable, Codable {
    /// SHA-256 of the source's hash, the canonical spec and the coder versions.
    public let identity: String
    public let source: String
    public let spec: String
    public let coder: String
    public let blob: String
    public let size: Int64
    public let format: String
    public let width: Int
    public let height: Int

    public init(
        identity: String, source: String, spec: String, coder: String, blob: String, size: Int64, format: String,
        width: Int, height: Int,
    ) {
        self.identity = identity
        self.source = source
        self.spec = spec
        self.coder = coder
        self.blob = blob
        self.size = size
        self.format = format
        self.width = width
        self.height = height
    }
}

/// One file of a finished item: a variant, or the `original`.
public struct RenditionRecord: Hashable, Sendable, Codable {
    public let name: String
    public let blob: String
    public let size: Int64
    public let format: String
    public let width: Int?
    public let height: Int?

    public init(name: String, blob: String, size: Int64, format: String, width: Int?, height: Int?) {
        self.name = name
        self.blob = blob
        self.size = size
        self.format = format
        self.width = width
        self.height = height
    }
}
