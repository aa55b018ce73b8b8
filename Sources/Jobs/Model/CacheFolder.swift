/// What the index asks of the cache's files while it holds the write lock: what it says and what lies there change together.
///
/// The files belong to another module, so they come as functions. None of them may wait for anything but the disk.
public struct CacheFolder: Sendable {
    /// Whether a blob's file is there with this size.
    public var exists: @Sendable (_ hash: String, _ size: Int64) -> Bool
    /// Deletes a blob's file. One that isn't there is no failure.
    ///
    /// - Returns: what went wrong.
    public var remove: @Sendable (_ hash: String) -> String?
    /// Whether a worker or a helper has the file open: deleted, it would still take its room.
    public var isInUse: @Sendable (_ hash: String) -> Bool
    /// Makes the link of an entry point to its blob.
    public var link: @Sendable (CacheEntry) -> Void
    /// Deletes the link of an entry.
    public var unlink: @Sendable (CacheEntry) -> Void

    public init(
        exists: @escaping @Sendable (String, Int64) -> Bool, remove: @escaping @Sendable (String) -> String?,
        isInUse: @escaping @Sendable (String) -> Bool = { _ in false },
        link: @escaping @Sendable (CacheEntry) -> Void = { _ in },
        unlink: @escaping @Sendable (CacheEntry) -> Void = { _ in },
    ) {
        self.exists = exists
        self.remove = remove
        self.isInUse = isInUse
        self.link = link
        self.unlink = unlink
    }
}

/// The file that stands for a URL and a variant's name now.
public struct CacheEntry: Hashable, Sendable, Codable {
    public let key: String
    public let variant: String
    public let blob: String
    public let format: String

    public init(key: String, variant: String, blob: String, format: String) {
        self.key = key
        self.variant = variant
        self.blob = blob
        self.format = format
    }
}
