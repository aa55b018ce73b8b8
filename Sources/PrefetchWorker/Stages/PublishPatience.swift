internal import Synchronization

/// How long results stay in hand that can't be recorded.
struct PublishPatience: Sendable {
    /// How many times a transaction is tried again after a temporary error of the database, with a second between two
    /// tries.
    var retries = 30
    /// How long results are kept while the bucket does not answer: cron runs a drain again soon.
    var milliseconds: Int64 = 60_000

    /// For a worker that runs until it is stopped.
    static let endless = PublishPatience(retries: .max, milliseconds: .max)
}

/// The time since the bucket has taken a whole group of files.
final class BucketOutage: Sendable {
    private let since = Mutex<Int64?>(nil)

    /// - Parameter now: when files could not be sent, in milliseconds of the monotonic clock; nil if all were.
    /// - Returns: milliseconds.
    func lasts(_ now: Int64?) -> Int64 {
        since.withLock { since in
            since = now.map { min(since ?? $0, $0) }
            return (now ?? 0) - (since ?? 0)
        }
    }
}
