/// Something that has happened to a job or to one of its items.
public struct JobEvent: Hashable, Sendable, Codable {
    public enum Kind: String, Sendable, Codable {
        /// An item has ended, most often.
        case item
        /// A job has come to be, or has another state.
        case job
        /// How far the job is, after the events before it. It is no event of the log: it has the id of the one before.
        case progress
    }

    /// Grows from event to event. A reader that goes on after the last one it has seen misses nothing and sees nothing twice.
    public let id: Int64
    /// ISO 8601, by the machine's clock.
    public let at: String
    public let event: Kind
    public let job: JobID
    public internal(set) var item: Int64?
    /// Nil for an item that was pruned since.
    public internal(set) var url: String?
    /// `done`, `cached`, `failed`, `blacklisted` or `cancelled` of an item; of a job its state.
    public internal(set) var state: String?
    /// The class of a failure.
    public internal(set) var failure: String?
    /// Of a job's items, how many have ended, as SDWebImage counts them: those that were skipped among them.
    public internal(set) var finished: Int?
    /// How many of the finished ones have failed.
    public internal(set) var skipped: Int?
    public internal(set) var total: Int?

    enum CodingKeys: String, CodingKey {
        case id, at, event, job, item, url, state, finished, skipped, total
        case failure = "class"
    }
}
