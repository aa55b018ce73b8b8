public import Core

/// A store that has all blobs, behind a folder that keeps those in use: a bucket behind a machine's disk.
///
/// Blobs are stored before the index records them, and fetched into the folder when they are read. Calls block: keep
/// them off Swift's cooperative threads.
public protocol BackingStore: Sendable {
    /// For messages: `s3://pictures/shop`.
    var name: String { get }
    /// Stores blobs durably. A blob that exists already is stored again.
    ///
    /// - Returns: the error of each blob, in order; nil for one that is stored.
    func store(_ blobs: [PendingBlob]) -> [CacheError?]
    /// Writes a blob's bytes to an empty file and compares them with the hash.
    ///
    /// - Returns: bytes; nil if there is no such blob.
    /// - Throws: `damaged` if the stored bytes differ from the hash; `disk` if the store can't be reached.
    func fetch(_ hash: BlobHash, into file: BlobFile) throws(CacheError) -> Int64?
    /// Bytes of a blob; nil if there is none.
    func size(of hash: BlobHash) throws(CacheError) -> Int64?
    /// Deletes blobs. A missing blob is no error.
    func remove(_ hashes: [BlobHash]) throws(CacheError)
    /// Whether there is no blob.
    func isEmpty() throws(CacheError) -> Bool
    /// All blobs whose hashes begin with this byte. `age` is the time since a blob was stored, in milliseconds: this
    /// machine's time minus the store's time stamp. Nil if the store gives no time stamp.
    func blobs(inShard shard: Int) throws(CacheError) -> [(hash: BlobHash, size: Int64, age: Int64?)]
    /// The name by which the store and its index recognize each other; nil if it has none.
    func identity() throws(CacheError) -> String?
    /// Names the store, unless it has a name.
    ///
    /// - Returns: the store's name.
    func identify(as name: String) throws(CacheError) -> String
    /// Renames the store: from then on it belongs to no index that has the old name.
    func changeIdentity(to name: String) throws(CacheError)
    /// The owning index's description of itself, as it was last stored; nil if none is stored.
    func owner() throws(CacheError) -> String?
    func setOwner(_ text: String) throws(CacheError)
    /// Ends the calls in progress, and fails all later ones: the program ends and can't wait for a silent store.
    func abandon()
    /// What has been asked of the store since it was opened.
    var counts: BackingCounts { get }
    /// Tests whether the store can be written to.
    func probe() throws(CacheError)
    /// A URL from which anyone can read a blob for some time.
    ///
    /// - Parameter seconds: how long, at most seven days.
    func url(of hash: BlobHash, seconds: Int) throws(CacheError) -> String
}

/// What has been asked of a backing store, for metrics.
public struct BackingCounts: Hashable, Sendable {
    /// By kind and answer: `put 2xx`, `get none`.
    public var requests: [String: Int64] = [:]
    /// Bytes.
    public var sent: Int64 = 0
    public var received: Int64 = 0

    public init() {}

    public static func - (now: BackingCounts, before: BackingCounts) -> BackingCounts {
        var more = now
        for (label, count) in before.requests { more.requests[label, default: 0] -= count }
        more.sent -= before.sent
        more.received -= before.received
        return more
    }
}
