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
        if isLapsing(now, isSharing: isSharing) { isLapsed = true }
        return !isLapsed
    }

    /// Whether a request that was allowed to start may still be sent. Called just before it is sent: the process may have
    /// been suspended after the look at the queue.
    func allowsSending(_ now: ContinuousClock.Instant, isSharing: Bool) -> Bool {
        !isLapsed && !isLapsing(now, isSharing: isSharing)
    }

    private func isLapsing(_ now: ContinuousClock.Instant, isSharing: Bool) -> Bool {
        guard let confirmedAt, now - confirmedAt >= Self.duration else { return false }
        return isSharing || lookedAt.map { now - $0 >= Self.gap } ?? true
    }
}
