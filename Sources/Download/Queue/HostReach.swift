import Core

/// Whether a host can be reached, by the outcomes of its requests.
struct HostReach {
    /// Whether the host has ever answered.
    private(set) var hasAnswered = false
    /// Failures to reach it, in a row.
    private(set) var failures = 0
    /// How often its circuit has opened since its last answer.
    private(set) var circuitOpenCount = 0
    /// The time of its first failure, if it has never answered.
    private(set) var failingSince: ContinuousClock.Instant?
    private(set) var lastFailure: (at: ContinuousClock.Instant, failure: Failure)?

    mutating func answered() {
        (hasAnswered, failures, circuitOpenCount, failingSince, lastFailure) = (true, 0, 0, nil, nil)
    }

    /// - Parameter counts: whether the failure counts towards opening the circuit.
    mutating func failed(_ failure: Failure, counts: Bool, now: ContinuousClock.Instant) {
        if failure.response != nil { hasAnswered = true }
        if counts, failures < .max { failures += 1 }
        forgetOld(now)
        if !hasAnswered { failingSince = failingSince ?? now }
        lastFailure = (now, failure)
    }

    mutating func circuitOpened() { circuitOpenCount = min(circuitOpenCount + 1, 20) }

    mutating func restore(circuitOpenCount: Int, failures: Int) {
        self.circuitOpenCount = min(max(0, circuitOpenCount), 20)
        if circuitOpenCount > 0 { self.failures = failures }
    }

    /// Adopts the knowledge of another worker, or of this worker before a restart.
    mutating func adopt(since: ContinuousClock.Instant, last: ContinuousClock.Instant, _ failure: Failure) {
        guard !hasAnswered else { return }
        failingSince = min(since, failingSince ?? since)
        lastFailure = (max(last, lastFailure?.at ?? last), failure)
    }

    private mutating func forgetOld(_ now: ContinuousClock.Instant) {
        if let last = lastFailure?.at, now - last > CircuitBreakerRules.memory { failingSince = nil }
    }

    /// Whether the host has never answered, its first failure was at least `patience` ago, and its last failure is
    /// recent.
    func isGivenUp(after patience: Duration, now: ContinuousClock.Instant) -> Bool {
        guard !hasAnswered, let failingSince, let last = lastFailure?.at else { return false }
        return now - last <= CircuitBreakerRules.memory && now - failingSince >= patience
    }
}
