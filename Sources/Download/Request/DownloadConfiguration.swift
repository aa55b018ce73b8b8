public import Core

/// The limits and habits of a ``Downloader``. Each limit is a promise: what exceeds it ends in a class of its own.
public struct DownloadConfiguration: Sendable {
    /// Transfers at once, and at once to one host name. Where no place has become free for a second, hosts of which
    /// nothing runs get one more each, half as many in all.
    public var concurrency = 6
    public var perHost = 6
    /// Requests a second to one host; nil for as many as the other limits let through.
    public var rate: Double?
    /// Burst size: requests to one host that may follow each other without a pause; only with a rate.
    public var burst = 1
    /// When a host that can't be reached is left alone.
    public var parking = ParkingRules()
    /// A transfer that got nothing for so long gives its place among ``concurrency`` to other hosts.
    public var patience = Duration.milliseconds(500)
    /// Once no more is wanted than what runs, a transfer that gets nothing for so long is cancelled.
    public var settlingPatience = Duration.seconds(3)
    /// A transfer starts only while running transfers and unconsumed bodies are together fewer than this. The excess
    /// over ``concurrency`` stays the same when that is changed while the downloader runs.
    public var maxUnconsumedBodies = 32
    /// Bytes of bodies that broke off and are kept for a later try to go on with.
    public var maxPartialBytes: Int64 = 256 << 20
    /// Bytes of a body after content decoding.
    public var maxBodyBytes: Int64 = 64 << 20
    /// Bytes of all headers of one response, interim responses and trailers included.
    public var maxHeaderBytes = 64 << 10
    public var maxRedirects = 5
    public var maxURLBytes = 8192
    /// How long the addresses of a name are used before it is looked up anew; libcurl's own default.
    public var nameLifetime = Duration.seconds(60)
    /// From looking up the name to the end of the TLS handshake, per hop.
    public var connectTimeout = Duration.seconds(10)
    /// The longest time without a byte once connected.
    public var silenceTimeout = Duration.seconds(15)
    /// The whole transfer, redirects included.
    public var totalTimeout = Duration.seconds(300)
    public var userAgent = "PrefetchWorker/1"
    /// Sent to every host, but where the request has its own header of that name.
    public var headers: [(name: String, value: String)] = []
    /// The same, with a default `Accept`.
    var commonHeaders: [(name: String, value: String)] {
        if headers.contains(where: { $0.name.lowercased() == "accept" }) { return headers }
        return headers + [("Accept", "image/*,*/*;q=0.8")]
    }
    /// A PEM file of certificate authorities, instead of the system's.
    public var caFile: String?
    /// A proxy's URL. Without one the environment's proxy variables are ignored. With one the address guard is blind:
    /// neither the proxy's address nor what it connects to is judged.
    public var proxy: String?
    public var addresses = AddressPolicy.publicOnly

    public init() {}

    /// - Throws: `delegate`, with a sentence on the headers or the user agent.
    public func check() throws(Failure) {
        try HeaderRules.check(headers)
        try HeaderRules.check(userAgent, of: "User-Agent")
    }

    /// Our product's name, in lower case: what robots.txt and X-Robots-Tag may call us.
    var agentName: String { userAgent.prefix { $0 != "/" && $0 != " " }.lowercased() }

    public var hostLimits: HostLimits { HostLimits(perHost: perHost, rate: rate, burst: burst) }
}
