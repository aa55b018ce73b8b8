/// How long buckets had no owner.
struct Spans {
    var lengths: [Tick] = []

    /// Seconds.
    func quantile(_ share: Double) -> Double {
        guard !lengths.isEmpty else { return 0 }
        let sorted = lengths.sorted()
        return Double(sorted[min(sorted.count - 1, Int(share * Double(sorted.count)))]) / Double(ticksPerSecond)
    }
    var greatest: Double { Double(lengths.max() ?? 0) / Double(ticksPerSecond) }
}

/// The buckets whose hosts get no requests, since their owner has gone, pauses or drains them.
struct OwnerlessBuckets {
    private let hosts: [Double]
    private var since: [Tick?]
    private var cause: [Cause]
    private(set) var spans = [Spans](repeating: Spans(), count: Cause.allCases.count)
    private var hostsNow = 0.0
    /// Hosts × seconds.
    private(set) var hostSeconds = 0.0
    private(set) var mostHosts = 0.0

    /// `hosts` are those of each bucket.
    init(hosts: [Double]) {
        self.hosts = hosts
        since = [Tick?](repeating: nil, count: hosts.count)
        cause = [Cause](repeating: .join, count: hosts.count)
    }

    mutating func add(_ bucket: Int, cause: Cause, at now: Tick) {
        guard since[bucket] == nil else { return }
        since[bucket] = now
        self.cause[bucket] = cause
        hostsNow += hosts[bucket]
    }

    mutating func remove(_ bucket: Int, at now: Tick) {
        guard let since = since[bucket] else { return }
        spans[cause[bucket].rawValue].lengths.append(now - since)
        hostsNow -= hosts[bucket]
        self.since[bucket] = nil
    }

    mutating func countSecond() {
        hostSeconds += hostsNow
        mostHosts = max(mostHosts, hostsNow)
    }

    /// Counts the buckets that still have no owner, which have waited at least until now, and says how many they are.
    mutating func endAll(at now: Tick) -> Int {
        let buckets = since.indices.filter { since[$0] != nil }
        for bucket in buckets { remove(bucket, at: now) }
        return buckets.count
    }
}
