/// How hard one host may be pressed.
public struct HostLimits: Sendable, Hashable {
    /// Transfers at once.
    public var perHost: Int
    /// Requests a second, on average; nil for as many as the other limits let through.
    public var rate: Double?
    /// Burst size: requests that may follow each other without a pause; only with a rate.
    public var burst: Int

    public init(perHost: Int = 6, rate: Double? = nil, burst: Int = 1) {
        self.perHost = min(max(1, perHost), 1_000)
        // One that is no number at all is none.
        self.rate = rate.flatMap { $0 > 0 ? min(max($0, 0.0001), 100_000) : nil }
        self.burst = min(max(1, burst), 10_000)
    }
}

/// One worker's share of a host's limits.
public struct HostShare: Sendable, Hashable {
    /// Transfers at once.
    public var places: Int
    /// Downloaders that share the host's rate.
    public var parts: Int

    public static let none = HostShare(places: 0, parts: 1)

    public init(places: Int, parts: Int) {
        self.places = max(0, places)
        self.parts = max(1, parts)
    }
}

/// When a host that can't be reached is left alone, and for how long.
public struct ParkingRules: Sendable, Hashable {
    /// Failed connections and timeouts in a row.
    public var failures = 8
    /// The first time; it doubles with each probe that fails.
    public var time = Duration.seconds(30)
    public var longest = Duration.seconds(600)
    /// How long after its first failure a host that has never answered is given up; then the requests that wait for it
    /// end.
    public var patience = Duration.seconds(30)

    /// The failures of a host that has never answered are forgotten after so long without another.
    static let memory = Duration.seconds(60)

    public init() {}

    /// How long one that has never answered is left alone between two probes.
    func probing(_ isGivenUp: Bool) -> Duration { isGivenUp ? Self.memory : patience / 3 }
}

/// Why nothing starts on a host.
public enum HostBlock: String, Sendable, Hashable {
    /// The origin said so, with `Retry-After`.
    case asked
    /// It could not be reached several times in a row.
    case parked
}
