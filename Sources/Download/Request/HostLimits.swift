/// The limits of one host.
public struct HostLimits: Sendable, Hashable {
    /// Transfers at once.
    public var perHost: Int
    /// Requests a second, on average; nil for no limit.
    public var rate: Double?
    /// Burst size: requests that may start without a pause; only with a rate.
    public var burst: Int

    public init(perHost: Int = 6, rate: Double? = nil, burst: Int = 1) {
        self.perHost = min(max(1, perHost), 1_000)
        // NaN and rates that are not positive mean no limit.
        self.rate = rate.flatMap { $0 > 0 ? min(max($0, 0.0001), 100_000) : nil }
        self.burst = min(max(1, burst), 10_000)
    }
}

/// One worker's share of a host's limits.
public struct HostShare: Sendable, Hashable {
    /// Transfers at once.
    public var slots: Int
    /// Number of downloaders that share the host's rate.
    public var parts: Int

    public static let none = HostShare(slots: 0, parts: 1)

    public init(slots: Int, parts: Int) {
        self.slots = max(0, slots)
        self.parts = max(1, parts)
    }
}

/// The circuit breaker: after which failures a host's circuit opens, and for how long.
public struct CircuitBreakerRules: Sendable, Hashable {
    /// Failed connections and timeouts in a row that open the circuit.
    public var failures = 8
    /// How long the circuit is open at first; each failed probe doubles it.
    public var time = Duration.seconds(30)
    public var longest = Duration.seconds(600)
    /// How long after its first failure a host that has never answered is given up. Then the requests that wait for it
    /// end.
    public var patience = Duration.seconds(30)

    /// The failures of a host that has never answered are forgotten after this time without another failure.
    static let memory = Duration.seconds(60)

    public init() {}

    /// The time between two probes of a host that has never answered.
    func probing(_ isGivenUp: Bool) -> Duration { isGivenUp ? Self.memory : patience / 3 }
}

/// Why no request to a host starts.
public enum HostBlock: String, Sendable, Hashable {
    /// The origin sent `Retry-After`.
    case retryAfter = "retry-after"
    /// Its circuit is open: it could not be reached several times in a row.
    case circuitOpen = "circuit-open"
}
