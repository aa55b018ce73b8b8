struct Worker {
    var isAlive = true
    var isLeaving = false
    /// The database counts it among the living.
    var isListed = true
    /// When it sent its last heartbeat.
    var sentAt: Tick = 0
    /// By the clock of the database.
    var leaseEnd: Tick = 0
    /// Until then the worker can't reach the database, or it is suspended.
    var awayUntil: Tick = 0
    /// When the database notices that the worker's connection is gone.
    var lockGoneAt = Tick.max
    /// Seconds of the worker's clock in a second.
    var clockRate = 1.0
    var tenures: [Int] = []
    /// Buckets that it should own and doesn't yet, or that it has been given.
    var pending: [Int] = []
    /// URLs.
    var fetched = 0.0

    /// Seconds that the worker may still count on, by its own clock and from when it sent the last heartbeat.
    func remainingLease(at now: Tick, _ settings: Settings) -> Double {
        if settings.broken == .wrongClock {
            return Double(leaseEnd - now) / Double(ticksPerSecond) + Model.slowClock
        }
        return Double(settings.lease) - Double(now - sentAt) / Double(ticksPerSecond) * clockRate
    }
}

/// One worker's time with one bucket.
struct Tenure {
    enum State {
        /// The bucket's hosts get requests.
        case asking
        /// The lease is about to end.
        case paused
        /// No request starts, and the bucket is handed over when those in flight have ended.
        case draining
        case over
    }

    let bucket: Int
    let worker: Int
    var state = State.paused
    /// Requests in flight at each simulated part of the bucket.
    var inFlight: [Int]
    /// The sum of these.
    var inFlightInAll = 0
    var drainBegan: Tick = 0
    /// When the requests to hosts that aren't simulated one by one have ended.
    var restEnds: Tick = 0
}
