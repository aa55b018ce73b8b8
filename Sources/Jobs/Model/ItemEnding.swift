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
    /// Items whose files were evicted before they could be written down. They went back to the queue.
    public internal(set) var vanished: Set<Int64> = []
    /// Files that are counted by the index from now on, and no longer by the room that was set aside for them; with
    /// their sizes.
    public internal(set) var counted: [String: Int64] = [:]
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
