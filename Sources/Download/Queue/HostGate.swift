import Core

/// Decides when the next request may go to a host.
///
/// Four limits apply: the number of running transfers; a token bucket; a window that shrinks when the host says that it
/// is overloaded (429, 503) and grows with every success; and a block, by `Retry-After` or by the host's circuit
/// breaker. After the circuit was open, a single request probes the host.
///
/// A class, since the queue asks it several times for each request, and each question of a structure would copy it.
final class HostGate {
    private(set) var limits: HostLimits
    let circuitBreaker: CircuitBreakerRules
    private(set) var width = HostWindow()
    private(set) var reach = HostReach()
    private var tokens: Double
    private var refilledAt: ContinuousClock.Instant?
    /// No request starts before this time, because of the token bucket or a narrow window.
    private(set) var heldUntil: ContinuousClock.Instant?
    private(set) var blockedUntil: ContinuousClock.Instant?
    private(set) var block: HostBlock?
    private(set) var started: Int64 = 0
    /// This worker's share of the host's limits; nil for all of them.
    var share: HostShare? {
        didSet { tokens = min(tokens, burst) }
    }

    init(limits: HostLimits, circuitBreaker: CircuitBreakerRules) {
        self.limits = limits
        self.circuitBreaker = circuitBreaker
        tokens = Double(limits.burst)
    }

    /// This worker's part of the burst: all workers that ask the host have one together.
    private var burst: Double { max(1, Double(limits.burst) / Double(share?.parts ?? 1)) }

    var window: Double { min(width.narrowed ?? .infinity, Double(limits.perHost)) }
    var hasAnswered: Bool { reach.hasAnswered }
    var circuitOpenCount: Int { reach.circuitOpenCount }

    /// Whether its state equals that of a new gate, so that it need not be kept.
    var isPristine: Bool {
        width.narrowed == nil && block == nil && heldUntil == nil && reach.lastFailure == nil && circuitOpenCount == 0
            && (limits.rate == nil || refilledAt == nil)
    }

    /// Whether a single request probes the host.
    var isProbed: Bool { reach.failures >= circuitBreaker.failures }

    func mayStart(running: Int) -> Bool {
        guard heldUntil == nil, blockedUntil == nil else { return false }
        return running < min(isProbed ? 1 : max(1, Int(window)), share?.slots ?? .max)
    }

    func setLimits(_ limits: HostLimits) {
        self.limits = limits
        tokens = min(tokens, burst)
        if limits.rate == nil, width.narrowed.map({ $0 >= 1 }) ?? true { heldUntil = nil }
    }

    func started(at now: ContinuousClock.Instant) {
        started &+= 1
        var pause = Duration.zero
        if let rate = limits.rate.map({ $0 / Double(share?.parts ?? 1) }) {
            refill(now, rate)
            tokens -= 1
            if tokens < 1 { pause = .seconds((1 - tokens) / rate) }
        }
        if let narrowed = width.narrowed, narrowed < 1 { pause = max(pause, .seconds(1 / narrowed - 1)) }
        heldUntil = pause > .zero ? now + pause : nil
    }

    private func refill(_ now: ContinuousClock.Instant, _ rate: Double) {
        if let refilledAt { tokens = min(burst, tokens + (now - refilledAt).inSeconds * rate) }
        refilledAt = now
    }

    /// Ends the blocks and pauses that are over.
    func release(_ now: ContinuousClock.Instant) {
        if let until = heldUntil, until <= now { heldUntil = nil }
        if let until = blockedUntil, until <= now {
            blockedUntil = nil
            block = nil
        }
    }

    /// Blocks the host. A shorter block does not replace a longer one.
    func block(until: ContinuousClock.Instant, _ reason: HostBlock) {
        if let blockedUntil, blockedUntil >= until { return }
        blockedUntil = until
        block = reason
    }

    /// Restores the state from before a restart.
    func restore(window: Double?, circuitOpenCount: Int) {
        if let window, window < Double(limits.perHost) { width.restore(window) }
        reach.restore(circuitOpenCount: circuitOpenCount, failures: circuitBreaker.failures)
    }

    /// Adopts failures that another worker has seen.
    func adopt(since: ContinuousClock.Instant, last: ContinuousClock.Instant, _ failure: Failure) {
        reach.adopt(since: since, last: last, failure)
    }

    /// Records that another worker got an answer.
    func noteAnswered() {
        if !reach.hasAnswered { reach.answered() }
    }

    func isGivenUp(_ now: ContinuousClock.Instant) -> Bool { reach.isGivenUp(after: circuitBreaker.patience, now: now) }

    /// Opens the host's circuit.
    func openCircuit(_ now: ContinuousClock.Instant) {
        let time = min(circuitBreaker.longest, circuitBreaker.time * (1 << reach.circuitOpenCount))
        reach.circuitOpened()
        // A host that has never answered is probed more often while its items wait, since they are given up soon.
        block(until: now + (reach.hasAnswered ? time : min(time, circuitBreaker.probing(isGivenUp(now)))), .circuitOpen)
    }

    private func answered() {
        reach.answered()
        // The host is reachable, so its circuit closes.
        if block == .circuitOpen { (block, blockedUntil) = (nil, nil) }
    }

    /// Updates the state at the end of a request that began at `start`.
    func learn(_ signal: HostSignal, start: ContinuousClock.Instant, now: ContinuousClock.Instant) {
        let limit = Double(limits.perHost)
        switch signal {
        case .nothing: break
        case .answered:
            width.widen(upTo: limit)
            answered()
        case .unavailable(let isFirst):
            answered()
            if isFirst { width.unavailable(limit: limit, start: start, now: now) }
        case .tooMuch:
            answered()
            width.tooMuch(limit: limit, start: start, now: now)
        case .hungUp(let failure):
            reach.failed(failure, counts: false, now: now)
        case .unreachable(let failure, let isFirst):
            // If the host has answered before, a URL that fails again does not count.
            reach.failed(failure, counts: isFirst || !hasAnswered, now: now)
            // Requests that were running when the circuit opened tell nothing new.
            guard isProbed, block != .circuitOpen else { return }
            openCircuit(now)
        }
    }
}

/// The effect of a request's outcome on the state of its host.
enum HostSignal: Sendable {
    case nothing
    case answered
    /// 503. In this case and below, `isFirst` is false if the same URL has failed before.
    case unavailable(isFirst: Bool)
    /// 429, or 503 with a `Retry-After`.
    case tooMuch
    /// The host accepted the request and closed the connection without an answer.
    case hungUp(Failure)
    case unreachable(Failure, isFirst: Bool)

    /// - Parameter isRepeated: whether the same URL has failed before.
    init(_ outcome: DownloadOutcome<BodyFile>, isRepeated: Bool = false) {
        guard case .failed(let failure) = outcome else {
            self = .answered
            return
        }
        switch failure.failureClass {
        case .connectionLost where !failure.hasAsked: self = .nothing
        case .dns, .connect, .timeout, .tlsHandshake: self = .unreachable(failure, isFirst: !isRepeated)
        case .connectionLost where failure.response == nil: self = .hungUp(failure)
        case .http(429): self = .tooMuch
        case .http(503): self = failure.retryAfter == nil ? .unavailable(isFirst: !isRepeated) : .tooMuch
        case .cancelled, .invalidURL, .delegate, .forbiddenAddress, .diskFull, .diskError: self = .nothing
        default: self = .answered
        }
    }
}
