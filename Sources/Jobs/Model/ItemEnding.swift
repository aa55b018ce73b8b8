public import Core
internal import GRDB

/// The result of an item that succeeded.
public struct Completion: Sendable {
    public var source: SourceRecord
    public var renditions: [RenditionRecord]
    /// Renditions made now, for the index.
    public var newVariants: [VariantRecord]
    /// Whether it was there already, so that no network was used.
    public var isCached: Bool
    /// The failure in whose place it stands: it counts among the host's all the same.
    public var concealed: Failure?

    public init(source: SourceRecord, renditions: [RenditionRecord], newVariants: [VariantRecord], isCached: Bool) {
        self.source = source
        self.renditions = renditions
        self.newVariants = newVariants
        self.isCached = isCached
    }
}

/// How a worker lets go of an item.
public indirect enum ItemEnding: Sendable {
    case done(Completion)
    /// Ends it, and blacklists the URL as the class says.
    case failed(Failure)
    /// Ends it without a request, because its URL is listed.
    case blacklisted(BlacklistEntry)
    /// Back to the queue for the next of its fallbacks, since this URL has failed for good.
    case fallBack(Failure)
    /// Tried again at this time; `blockingHost` keeps everybody off the host until then.
    case retry(at: WallTime, Failure, blockingHost: Bool)
    /// Waits without having been tried, most often for its host; `reason` is a sentence.
    case wait(until: WallTime, host: String? = nil, reason: String? = nil)
    /// Back to the queue, as if it had never been claimed.
    case release
}

/// The result of finishing a group of items.
public struct FinishedGroup: Sendable {
    /// Items that were no longer this lease's: cancelled, deleted or taken back meanwhile. Their results were not
    /// recorded, which is not an error.
    public internal(set) var fencedOut: Set<Int64> = []
    /// Items that were not ended, since a file of theirs may be deleted at this moment: it has to be held first.
    public internal(set) var doubtful: Set<Int64> = []
    /// Links that entries were written for, or taken from, where links are kept.
    public internal(set) var links: [CacheEntry] = []
    /// Files that are counted by the index from now on, and no longer by the room that was set aside for them; with
    /// their sizes.
    public internal(set) var counted: [String: Int64] = [:]
}

/// Blobs whose files a worker holds while their items are ended, so that no program deletes them.
public struct HeldBlobs: Sendable {
    /// Those that it has just given their names.
    public var published: Set<String>
    /// Those that it found to be there.
    public var found: Set<String> = []

    public init(published: Set<String> = []) { self.published = published }

    public func contains(_ hash: String) -> Bool { published.contains(hash) || found.contains(hash) }
}

/// Files of a group that a worker has set room aside for.
public struct GroupRoom: Sendable {
    public let worker: Int64
    public let hashes: Set<String>

    public init(worker: Int64, hashes: Set<String>) {
        self.worker = worker
        self.hashes = hashes
    }
}
