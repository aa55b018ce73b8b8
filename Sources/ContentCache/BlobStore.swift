public import Core
public import SystemPackage

/// What a run needs of blobs. ``ContentCache`` keeps them in a folder; a bucket behind a folder can stand here as well.
public protocol BlobStore: Sendable {
    /// A new file without a name, in the file system of the cache.
    func makeFile() throws(CacheError) -> BlobFile
    /// Gives files their names, durably: when it returns, those without an error are on the disk.
    func publish(_ group: [PendingBlob]) -> Publication
    /// Whether a blob of this size is there. Its bytes are not read.
    func exists(_ hash: BlobHash, size: Int64) -> Bool
    /// Opens a blob of this size and keeps it from being deleted for as long as the file is open.
    ///
    /// - Returns: nil where there is none.
    func hold(_ hash: BlobHash, size: Int64) throws(CacheError) -> BlobFile?
    /// Lets programs delete a blob again whose file is still open.
    func letGo(_ file: BlobFile)
    /// Opens a blob after comparing all of it with its hash.
    ///
    /// - Throws: `damaged` when it is missing or isn't what its name says; `disk`.
    func openVerified(_ hash: BlobHash) throws(CacheError) -> BlobFile
    /// Waits for the turn to delete blobs, which one program has at a time.
    func turnToDelete() throws(CacheError) -> DeletionTurn
    /// A blob that no program has open, and that none can hold until this is let go; nil where one has.
    func unused(_ hash: BlobHash) -> UnusedBlob?
    /// Deletes a blob. One that isn't there is no failure.
    func remove(_ blob: UnusedBlob, in turn: DeletionTurn) throws(CacheError)
    /// Visits every file, a folder at a time; those without a hash have no business there.
    func forEachFile(_ visit: (FilePath, BlobHash?) throws -> Void) throws
}

extension ContentCache: BlobStore {}
