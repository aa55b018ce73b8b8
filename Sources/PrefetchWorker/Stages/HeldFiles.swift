internal import ContentCache
internal import Core
internal import Jobs
internal import Logging

/// The files of a group's results, held until the group is recorded: no program deletes a held file.
struct HeldFiles: Sendable {
    private var hashes: HeldBlobs
    private var files: [BlobFile]

    /// - Parameter owner: the number under which they were announced.
    init(_ published: [BlobHash: BlobFile], owner: Int64) {
        hashes = HeldBlobs(published: Set(published.keys.map(\.hex)), owner: owner)
        files = Array(published.values)
    }

    /// Opens the files of a result that are not held yet. Blocks on the disk.
    ///
    /// - Returns: false if one of the files is missing.
    /// - Throws: `disk` if one can't be opened or is being deleted.
    mutating func hold(_ completion: Completion, _ cache: any BlobStore) throws(CacheError) -> Bool {
        for rendition in completion.renditions where !hashes.contains(rendition.blob) {
            guard let hash = BlobHash(rendition.blob), let file = try cache.hold(hash, size: rendition.size)
            else { return false }
            hashes.found.insert(rendition.blob)
            files.append(file)
        }
        return true
    }

    /// - Parameter links: made for the group before it is recorded.
    func hashes(links: LinkKeeper.Made) -> HeldBlobs {
        var hashes = hashes
        hashes.linkRound = links.round
        return hashes
    }

    func letGo(_ cache: any BlobStore) {
        for file in files { cache.letGo(file) }
    }
}
