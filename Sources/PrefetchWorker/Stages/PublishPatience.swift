internal import Synchronization

/// How long a worker keeps results that it can't record.
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

    /// Called when files could not be sent.
    ///
    /// - Parameter now: milliseconds of the monotonic clock.
    /// - Returns: milliseconds.
    func lasts(_ now: Int64) -> Int64 {
        since.withLock { since in
            let start = min(since ?? now, now)
            since = start
            return now - start
        }
    }

    func isOver() { since.withLock { $0 = nil } }
}
