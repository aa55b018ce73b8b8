internal import Jobs

/// The times and bytes of one item on its way through the stages, for the counters.
struct ItemMeasure: Sendable {
    /// The request that the item made itself; nil if it made none or shared another item's.
    struct Request: Sendable {
        /// Nil without an answer.
        let status: Int?
        let received: Int64
        /// From the request to the last byte.
        let time: Duration
    }

    var request: Request?
    /// How long the item waited for its host's limits, or for another item's fetch of the same URL.
    var waiting: Duration?
    /// Nil if no rendition had to be made.
    var transforming: Duration?
    var publishing: Duration?

    /// For the log, in the order in which they happen; nil for a stage that the item did not need.
    var stages: [(name: String, time: Duration?)] {
        [("wait", waiting), ("fetch", request?.time), ("transform", transforming), ("publish", publishing)]
    }

    /// Notes a fetch.
    ///
    /// - Parameters:
    ///   - record: the request and its result; nil if no request was made.
    ///   - elapsed: the time from the item's point of view.
    ///   - isOwn: whether this item has started it.
    mutating func fetched(_ record: TryRecord?, elapsed: Duration, isOwn: Bool) {
        let time = Duration.microseconds(max(0, min(record?.total ?? 0, 1 << 50)))
        waiting = isOwn ? max(.zero, elapsed - time) : elapsed
        guard isOwn, let record else { return }
        request = Request(status: record.httpStatus, received: max(0, record.received ?? 0), time: time)
    }
}
