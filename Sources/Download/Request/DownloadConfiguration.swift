public import Core

/// The limits and settings of a ``Downloader``. A transfer that exceeds a limit ends with a class of its own.
public struct DownloadConfiguration: Sendable {
    /// Transfers at once, in all and to one host name. If no slot has become free for a second, hosts without a
    /// running transfer get one additional slot each, limited to half of this number in all.
    public var concurrency = 6
    public var perHost = 6
    /// Requests a second to one host; nil for no limit.
    public var rate: Double?
    /// Burst size: requests to one host that may start without a pause; only with a rate.
    public var burst = 1
    /// The circuit breaker of hosts that cannot be reached.
    public var circuitBreaker = CircuitBreakerRules()
    /// A transfer that has received nothing for this long is stalled: its slot of ``concurrency`` goes to other hosts.
    public var patience = Duration.milliseconds(500)
    /// While settling, a transfer that has received nothing for this long is cancelled.
    public var drainPatience = Duration.seconds(3)
    /// A transfer starts only while running transfers and unconsumed bodies together are fewer than this. The
    /// difference to ``concurrency`` stays the same when the concurrency changes.
    public var maxUnconsumedBodies = 32
    /// Maximum bytes of interrupted bodies that are kept so that a later try can resume them.
    public var maxPartialBytes: Int64 = 256 << 20
    /// Maximum bytes of a body after content decoding.
    public var maxBodyBytes: Int64 = 64 << 20
    /// Maximum bytes of all headers of one response, including interim responses and trailers.
    public var maxHeaderBytes = 64 << 10
    public var maxRedirects = 5
    public var maxURLBytes = 8192
    /// How long the addresses of a name are used before it is looked up again; libcurl's own default.
    public var nameLifetime = Duration.seconds(60)
    /// From the name lookup to the end of the TLS handshake, for each hop.
    public var connectTimeout = Duration.seconds(10)
    /// Idle timeout: the longest time without a byte once connected.
    public var silenceTimeout = Duration.seconds(15)
    /// The whole transfer, including redirects.
    public var totalTimeout = Duration.seconds(300)
    /// The interval of the reports on a running transfer; ``Downloader/progress`` is updated at least every 0.4 s.
    public var progressInterval = Duration.seconds(1)
    public var userAgent = "PrefetchWorker/1"
    /// Sent to every host, unless the request has its own header of that name.
    public var headers: [(name: String, value: String)] = []
    /// ``headers`` with a default `Accept`.
    var commonHeaders: [(name: String, value: String)] {
        if headers.contains(where: { $0.name.lowercased() == "accept" }) { return headers }
        return headers + [("Accept", "image/*,*/*;q=0.8")]
    }
    /// A PEM file of certificate authorities to use instead of the system's.
    public var caFile: String?
    /// A proxy's URL. Without one the environment's proxy variables are ignored. With one the address policy is not
    /// applied, neither to the proxy's address nor to the addresses that it connects to.
    public var proxy: String?
    public var addresses = AddressPolicy.publicOnly

    public init() {}

    /// - Throws: `delegate`, with a sentence about the headers or the user agent.
    public func check() throws(Failure) {
        try HeaderRules.check(headers)
        try HeaderRules.check(userAgent, of: "User-Agent")
    }

    /// The product's name in lower case, as robots.txt and X-Robots-Tag name it.
    var agentName: String { userAgent.prefix { $0 != "/" && $0 != " " }.lowercased() }

    public var hostLimits: HostLimits { HostLimits(perHost: perHost, rate: rate, burst: burst) }
}
