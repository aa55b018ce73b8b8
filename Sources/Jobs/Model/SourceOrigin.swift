/// Where the bytes of an item's source came from.
public enum SourceOrigin: String, Hashable, Sendable, Codable, CaseIterable {
    case network
    /// An `ImageLoader` of the program.
    case loader
    /// A `file:` or `data:` URL.
    case file
    /// The cache on the disk, also a source that its origin confirmed with a 304.
    case disk
    /// The worker's cache in memory.
    case memory

    /// Whether the source's bytes came from the cache. Its origin may have confirmed them with a 304.
    public var isCache: Bool { self == .disk || self == .memory }

    /// The value of `items.bytes_from`; nil for network and disk, which follow from `items.cached`.
    var stored: String? { self == .network || self == .disk ? nil : rawValue }

    /// The origin of a result, as SQL.
    static let column = """
        CASE WHEN items.state = 'done'
            THEN coalesce(items.bytes_from, CASE items.cached WHEN 0 THEN 'network' ELSE 'disk' END) END
        """
}
