/// A picture for the cache that no job has fetched or made.
public struct StoredPicture: Sendable {
    /// The cache key under which it is stored.
    public let key: String
    /// The record of the source; nil for a variant.
    public var source: SourceRecord?
    /// The file, with the variant's name, or `original` for a source.
    public let rendition: RenditionRecord
    /// Records of renditions for the index: jobs that need one of these renditions use this file instead of making it.
    public var variants: [VariantRecord] = []
    /// Whether the index has it already; then only its use is recorded.
    public var isKnown = false

    public init(key: String, source: SourceRecord?, rendition: RenditionRecord) {
        self.key = key
        self.source = source
        self.rendition = rendition
    }

    public var entry: CacheEntry {
        CacheEntry(key: key, variant: rendition.name, blob: rendition.blob, format: rendition.format)
    }
}

/// Where a picture of a URL belongs, and what the index has there.
public struct PicturePlace: Sendable {
    public let key: String
    /// The present file of this URL and variant.
    public internal(set) var entry: CacheEntry?
    /// The source of the URL.
    public internal(set) var source: SourceRecord?
    /// The index's records of those renditions of the source whose file is that of ``entry``.
    public internal(set) var variants: [VariantRecord] = []
}

/// The result of recording a group of stored pictures.
public struct StoredGroup: Sendable {
    /// Positions, in the group, of known pictures that the index no longer has. They were not recorded.
    public internal(set) var gone: Set<Int> = []
    /// The links whose entries were added or removed, if links are kept.
    public internal(set) var links: [CacheEntry] = []
    /// Files that the index counts from now on instead of their reservations, with their sizes.
    public internal(set) var counted: [String: Int64] = [:]
}
