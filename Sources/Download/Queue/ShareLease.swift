/// How long a downloader may start requests without a sign that other workers still know of it.
///
/// Workers split the limits on hosts among those that they have seen lately. When a worker was suspended (SIGSTOP, a
/// frozen container), the others have taken its slots, and it does not know that when it continues.
public struct ShareLease: Sendable {
    /// Shorter than the time after which other workers no longer wait for a silent one, 20 s.
    public static let duration = Duration.seconds(15)
    /// A gap between two looks at the queue that can't come from load alone.
    static let gap = Duration.seconds(5)

    /// Nil for a downloader outside a run, such as that of `worker enqueue`: nothing confirms its shares.
    private var confirmedAt: ContinuousClock.Instant?
    private var lookedAt: ContinuousClock.Instant?
    private var isLapsed = false

    /// - Parameter time: when other workers knew of this one.
    /// - Returns: whether requests may start again.
    mutating func confirm(asOf time: ContinuousClock.Instant, now: ContinuousClock.Instant) -> Bool {
        guard now - time < Self.duration else { return false }
        confirmedAt = max(time, confirmedAt ?? time)
        defer { isLapsed = false }
        return isLapsed
    }

    /// Whether requests may start. Called at each look at the queue.
    ///
    /// A single worker goes on while the database is locked, since no other worker can take a slot during that time.
    /// After a gap it does not know whether it is still the only one.
    mutating func allowsStarts(_ now: ContinuousClock.Instant, isSharing: Bool) -> Bool {
        defer { lookedAt = now }
        guard let confirmedAt else { return true }
        let isOld = now - confirmedAt >= Self.duration
        if isOld, isSharing || lookedAt.map({ now - $0 >= Self.gap }) ?? true { isLapsed = true }
        return !isLapsed
    }
}
