/// A change of a job or of one of its items.
public struct JobEvent: Hashable, Sendable, Codable {
    public enum Kind: String, Sendable, Codable {
        /// An item has ended.
        case item
        /// A job was created or has changed its state.
        case job
        /// The job's progress, sent after a page of events. It is not in the log, and repeats the id of the event
        /// before it.
        case progress
    }

    /// Ids grow from event to event. A reader that continues after the last id that it has seen misses no event and
    /// gets none twice.
    public let id: Int64
    /// ISO 8601, from the machine's clock.
    public let at: String
    public let event: Kind
    public let job: JobID
    public internal(set) var item: Int64?
    /// Nil for an item that was pruned since.
    public internal(set) var url: String?
    /// `done`, `cached`, `failed`, `blacklisted` or `cancelled` for an item; the state for a job.
    public internal(set) var state: String?
    /// The failure's class.
    public internal(set) var failure: String?
    /// A JSON object in one line, from `items.meta`; it is not among the coded keys, since it is JSON already.
    public internal(set) var meta: String?
    /// The job's ended items as SDWebImage counts them, including skipped ones.
    public internal(set) var finished: Int?
    /// The finished items that failed.
    public internal(set) var skipped: Int?
    public internal(set) var total: Int?

    enum CodingKeys: String, CodingKey {
        case id, at, event, job, item, url, state, finished, skipped, total
        case failure = "class"
    }
}
