public import Core

/// The result of an item that succeeded.
///
/// A class, since a dozen places look at a part of it, and each would copy all parts of a structure.
public final class Completion: Sendable {
    public let source: SourceRecord
    public let renditions: [RenditionRecord]
    /// New renditions, for the index.
    public let newVariants: [VariantRecord]
    /// Where the source's bytes came from.
    public let origin: SourceOrigin
    /// Whether the source's bytes came from the cache. Its origin may have confirmed them with a 304.
    public var isCached: Bool { origin.isCache }
    /// The failure that this result replaces; it still counts among the host's failures.
    public let concealed: Failure?
    /// How long its files stay in the cache; nil to leave that as it is.
    public let lifetime: FileLifetime?

    public init(
        source: SourceRecord, renditions: [RenditionRecord], newVariants: [VariantRecord], origin: SourceOrigin,
        concealed: Failure? = nil, lifetime: FileLifetime? = nil,
    ) {
        self.source = source
        self.renditions = renditions
        self.newVariants = newVariants
        self.origin = origin
        self.concealed = concealed
        self.lifetime = lifetime
    }

    /// The same result in place of a failure.
    public func concealing(_ failure: Failure) -> Completion {
        Completion(
            source: source, renditions: renditions, newVariants: newVariants, origin: origin, concealed: failure,
            lifetime: lifetime)
    }
}

/// How long a job's files stay in the cache after their last use, in milliseconds; negative for ever.
public struct FileLifetime: Hashable, Sendable {
    /// The job's own; nil if it has none.
    public let own: Int64?
    /// The worker's.
    public let common: Int64

    public init(own: Int64?, common: Int64) {
        self.own = own
        self.common = common
    }

    /// The lifetime of a file that the index has already: the longest that any job which uses the file asks for.
    ///
    /// - Parameter known: the file's lifetime in the index; nil for the worker's.
    func longest(with known: Int64?) -> Int64? {
        let (before, now) = (known ?? common, own ?? common)
        if before < 0 { return known }
        return now < 0 || now > before ? own : known
    }
}

/// How a worker ends or releases an item.
public indirect enum ItemEnding: Sendable {
    case done(Completion)
    /// Ends the item, and blacklists the URL if the class requires it.
    case failed(Failure)
    /// Ends the item without a request, because its URL is on the blacklist.
    case blacklisted(BlacklistEntry)
    /// Queues the item again for its next fallback, since this URL has failed for good.
    case fallBack(Failure)
    /// Delays the item until this time; `blockingHost` also blocks its host until then.
    case retry(at: WallTime, Failure, blockingHost: Bool)
    /// Delays the item without a try, most often for its host; `reason` is a sentence.
    case wait(until: WallTime, host: String? = nil, reason: String? = nil)
    /// Queues the item again, as if it had never been claimed.
    case release
}

/// The result of finishing a group of items.
public struct FinishedGroup: Sendable {
    /// Items that this lease no longer holds: they were cancelled, deleted or reclaimed meanwhile. Their results were
    /// not recorded, which is not an error.
    public internal(set) var fencedOut: Set<Int64> = []
    /// Items that were not ended, since one of their files may be deleted at this moment: the worker has to hold the
    /// file first.
    public internal(set) var doubtful: Set<Int64> = []
    /// Items that ended with this failure instead, since the database refused their end.
    public internal(set) var refused: [Int64: Failure] = [:]
    /// The links whose entries were added or removed, if links are kept.
    public internal(set) var links: [CacheEntry] = []
    /// Files that the index counts from now on instead of their reservations, with their sizes.
    public internal(set) var counted: [String: Int64] = [:]
}

/// Blobs whose files a worker holds while it ends their items, so that no program deletes them.
public struct HeldBlobs: Sendable {
    /// Blobs that it has just published.
    public var published: Set<String>
    /// Blobs that it found in the cache.
    public var found: Set<String> = []
    /// Who has announced them, where machines share the cache: see `CacheEviction.announce`.
    public var owner: Int64?
    /// From ``LinkList/round()`` before the worker made the links of these blobs.
    public var linkRound: Int64?

    public init(published: Set<String> = [], owner: Int64? = nil, linkRound: Int64? = nil) {
        self.published = published
        self.owner = owner
        self.linkRound = linkRound
    }

    public func contains(_ hash: String) -> Bool { published.contains(hash) || found.contains(hash) }
}

/// The files of a group for which a worker has reserved space.
public struct GroupReservation: Sendable {
    public let worker: Int64
    public let hashes: Set<String>

    public init(worker: Int64, hashes: Set<String>) {
        self.worker = worker
        self.hashes = hashes
    }
}
