/// How hard one host may be pressed.
public struct HostLimits: Sendable, Hashable {
    /// Transfers at once.
    public var perHost: Int
    /// Requests a second, on average; nil for as many as the other limits let through.
    public var rate: Double?
    /// Requests that may follow each other at once after a pause; only with a rate.
    public var burst: Int

    public init(perHost: Int = 6, rate: Double? = nil, burst: Int = 1) {
        self.perHost = max(1, perHost)
        self.rate = rate.flatMap { $0 > 0 ? $0 : nil }
        self.burst = max(1, burst)
    }
}

/// When a host that can't be reached is left alone, and for how long.
public struct ParkingRules: Sendable, Hashable {
    /// Failed connections and timeouts in a row.
    public var failures = 8
    /// The first time; it doubles with each probe that fails.
    public var time = Duration.seconds(30)
    public var longest = Duration.seconds(600)

    public init() {}
}

/// Why nothing starts on a host.
public enum HostBlock: String, Sendable, Hashable {
    /// The origin said so, with `Retry-After`.
    case asked
    /// It could not be reached several times in a row.
    case parked
}

/// A host as it stands now.
public struct HostSnapshot: Sendable, Hashable {
    public var host: String
    public var running = 0
    public var waiting = 0
    /// Transfers that may run at once; below 1 there are pauses between them.
    public var window: Double
    /// The most that it may be, by the host's own limits.
    public var widest: Int
    public var block: HostBlock?
    /// How long the block lasts yet.
    public var blockedFor: Duration?
    /// How often it was parked without an answer since.
    public var parks = 0
    /// Requests begun since the downloader started.
    public var started: Int64 = 0
}
