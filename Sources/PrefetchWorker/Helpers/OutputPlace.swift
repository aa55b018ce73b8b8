internal import ContentCache

/// Where a helper's variants are written to, and how long each may get.
struct OutputPlace: Sendable {
    var isInMemory = false
    /// Bytes; nil for the helper's own limit.
    var most: Int64?

    func makeFile(in cache: ContentCache) throws(CacheError) -> BlobFile {
        try ScratchFiles(cache: cache, isInMemory: isInMemory).make()
    }
}
