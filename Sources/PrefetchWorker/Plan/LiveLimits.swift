internal import Core
internal import Download
internal import Jobs
internal import Synchronization

/// The worker's limits that `worker limits` changes while it runs. A job's own settings come first, then these, then
/// those with which the worker was started.
final class LiveLimits: Sendable {
    struct Values: Hashable, Sendable {
        var timeouts = DownloadRequest.Timeouts()
        var maxTries: Int?
        /// The upper bound of the first wait between tries, in milliseconds.
        var retryDelay: Int64?
        /// How long files stay in the cache, in milliseconds; negative for ever.
        var cacheMaxAge: Int64?
    }

    private let state = Mutex(Values())

    var values: Values { state.withLock { $0 } }

    /// - Parameter record: the limits of the worker as a whole; nil if none are set. Numbers beyond the limits, which
    ///   another program may have written, are clamped.
    func set(_ record: LimitsRecord?) {
        var values = Values()
        values.timeouts.silence = Self.timeout(record?.silenceTimeout)
        values.timeouts.connect = Self.timeout(record?.connectTimeout)
        values.timeouts.total = Self.timeout(record?.totalTimeout)
        values.maxTries = record?.maxTries.map { min(max($0, 1), 1_000) }
        values.retryDelay = record?.retryDelay.map { min(max($0, 0), LimitsRecord.longestDelay) }
        values.cacheMaxAge = record?.cacheMaxAge
        state.withLock { $0 = values }
    }

    private static func timeout(_ milliseconds: Int64?) -> Duration? {
        milliseconds.map { .milliseconds(min(max($0, 1), LimitsRecord.longestTime)) }
    }
}
