public import Core
public import SystemPackage

/// The blob operations that a run needs. ``ContentCache`` stores blobs in a folder; another store can conform as well.
public protocol BlobStore: Sendable {
    /// A new file without a name, in the file system of the cache.
    func makeFile() throws(CacheError) -> BlobFile
    /// Names files durably: when it returns, the files without an error are on the disk.
    func publish(_ group: [PendingBlob]) -> Publication
    /// Whether a blob of this size exists. Its bytes are not read.
    func exists(_ hash: BlobHash, size: Int64) -> Bool
    /// Opens a blob of this size and keeps it from being deleted for as long as the file is open.
    ///
    /// - Returns: nil if there is no such blob.
    func hold(_ hash: BlobHash, size: Int64) throws(CacheError) -> BlobFile?
    /// Lets programs delete a blob again although its file is still open.
    func letGo(_ file: BlobFile)
    /// Opens a blob after comparing all of its bytes with its hash.
    ///
    /// - Throws: `damaged` if it is missing or its bytes differ from its hash; `disk`.
    func openVerified(_ hash: BlobHash) throws(CacheError) -> BlobFile
    /// Waits for the right to delete blobs, which one program has at a time.
    func turnToDelete() throws(CacheError) -> DeletionTurn
    /// A blob that no program has open, and that none can hold until the result is released; nil if a program has it
    /// open.
    ///
    /// - Throws: `disk`, `diskFull` if that can't be arranged.
    func unused(_ hash: BlobHash) throws(CacheError) -> UnusedBlob?
    /// Deletes blobs. A missing blob is no error.
    ///
    /// - Returns: the error of each blob, in order; nil for one that is deleted.
    func remove(_ blobs: [UnusedBlob], in turn: DeletionTurn) -> [CacheError?]
    /// Visits every file, a folder at a time; a file that is no blob has no hash.
    func forEachFile(_ visit: (FilePath, BlobHash?) throws -> Void) throws
}

extension ContentCache: BlobStore {}
