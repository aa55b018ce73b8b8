/// When the next request may go to a host.
///
/// Four things hold requests back: the number that run already, a token bucket, a window that shrinks when the host says
/// that it is too much (429, 503) and grows again with every success, and a block: because the host asked for one, or
/// because it could not be reached. After such a block one request probes the host alone.
struct HostGate {
    private(set) var limits: HostLimits
    private let parking: ParkingRules
    /// Nil for as many as the limit allows.
    private var narrowed: Double?
    private var narrowedAt: ContinuousClock.Instant?
    private var tokens: Double
    private var refilledAt: ContinuousClock.Instant?
    /// Nothing starts before, for the bucket's sake or because of a narrow window.
    private(set) var heldUntil: ContinuousClock.Instant?
    private(set) var blockedUntil: ContinuousClock.Instant?
    private(set) var block: HostBlock?
    private var failures = 0
    private(set) var parks = 0
    private(set) var started: Int64 = 0
    /// Whether it has ever said anything.
    private(set) var hasAnswered = false

    /// The narrowest window: a request every 15 s.
    static let narrowest = 1.0 / 16

    init(limits: HostLimits, parking: ParkingRules) {
        self.limits = limits
        self.parking = parking
        tokens = Double(limits.burst)
    }

    var window: Double { min(narrowed ?? .infinity, Double(limits.perHost)) }

    /// Whether it has nothing to remember that a new one would not know.
    var isPristine: Bool {
        narrowed == nil && block == nil && heldUntil == nil && failures == 0 && parks == 0
            && (limits.rate == nil || refilledAt == nil)
    }

    func mayStart(running: Int) -> Bool {
        guard heldUntil == nil, blockedUntil == nil else { return false }
        let most = failures >= parking.failures ? 1 : max(1, Int(window))
        return running < most
    }

    mutating func setLimits(_ limits: HostLimits) {
        self.limits = limits
        tokens = min(tokens, Double(limits.burst))
        if limits.rate == nil, narrowed.map({ $0 >= 1 }) ?? true { heldUntil = nil }
    }

    mutating func started(at now: ContinuousClock.Instant) {
        started += 1
        var pause = Duration.zero
        if let rate = limits.rate {
            refill(now, rate)
            tokens -= 1
            if tokens < 1 { pause = .seconds((1 - tokens) / rate) }
        }
        if window < 1 { pause = max(pause, .seconds(1 / window - 1)) }
        heldUntil = pause > .zero ? now + pause : nil
    }

    private mutating func refill(_ now: ContinuousClock.Instant, _ rate: Double) {
        if let refilledAt { tokens = min(Double(limits.burst), tokens + (now - refilledAt).inSeconds * rate) }
        refilledAt = now
    }

    /// Ends what is over.
    mutating func release(_ now: ContinuousClock.Instant) {
        if let until = heldUntil, until <= now { heldUntil = nil }
        if let until = blockedUntil, until <= now {
            blockedUntil = nil
            block = nil
        }
    }

    /// A shorter block does not undo a longer one.
    mutating func block(until: ContinuousClock.Instant, _ reason: HostBlock) {
        if let blockedUntil, blockedUntil >= until { return }
        blockedUntil = until
        block = reason
    }

    /// What the host was like before a restart.
    mutating func restore(window: Double?, parks: Int) {
        if let window, window < Double(limits.perHost) { narrowed = max(Self.narrowest, window) }
        self.parks = parks
        if parks > 0 { failures = parking.failures }
    }

    /// Learns from the end of a request that began at `start`.
    mutating func learn(_ lesson: HostLesson, start: ContinuousClock.Instant, now: ContinuousClock.Instant) {
        switch lesson {
        case .nothing: break
        case .answered:
            widen()
            (failures, parks, hasAnswered) = (0, 0, true)
        case .tooMuch:
            (failures, parks, hasAnswered) = (0, 0, true)
            narrow(start, now)
        case .unreachable:
            failures += 1
            // Those that were under way when the host was parked tell nothing new.
            guard failures >= parking.failures, block != .parked else { return }
            let time = min(parking.longest, parking.time * (1 << min(parks, 20)))
            parks += 1
            block(until: now + time, .parked)
        }
    }

    /// Multiplicative down, once for all requests that were under way together.
    private mutating func narrow(_ start: ContinuousClock.Instant, _ now: ContinuousClock.Instant) {
        if let narrowedAt, start < narrowedAt { return }
        narrowed = max(Self.narrowest, window / 2)
        narrowedAt = now
    }

    /// Additive up: one more after as many successes as the window is wide.
    private mutating func widen() {
        guard let old = narrowed else { return }
        let wider = old + (old >= 1 ? 1 / old : 0.25)
        narrowed = wider >= Double(limits.perHost) ? nil : wider
    }
}

/// What the end of a request tells about its host.
enum HostLesson: Sendable {
    case nothing
    case answered
    /// 429 or 503.
    case tooMuch
    case unreachable

    init(_ outcome: DownloadOutcome) {
        guard case .failed(let failure) = outcome else {
            self = .answered
            return
        }
        switch failure.code {
        case .dns, .connect, .timeout, .tlsHandshake: self = .unreachable
        case .http(429), .http(503): self = .tooMuch
        case .cancelled, .internalError, .invalidURL, .invalidRequest, .forbiddenAddress, .disk: self = .nothing
        default: self = .answered
        }
    }
}

extension Duration {
    var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
