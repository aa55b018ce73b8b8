/// A host, or one part of a host that is split.
struct Part {
    let host: Int
    let bucket: Int
    /// How many of the host's requests at once are this part's.
    let share: Int
    /// Seconds.
    let latency: Double
}

/// All hosts, added up in 65,536 fine buckets; coarser buckets are ranges of these. The number of a host's URLs is
/// proportional to 1 / its rank (Zipf's law).
struct Population {
    private static let fine = 65_536
    private(set) var hosts = [Double](repeating: 0, count: fine)
    private(set) var urls = [Double](repeating: 0, count: fine)
    /// The URLs that the limit of each host lets through in `Settings.evenTime`.
    private(set) var urlsInTime = [Double](repeating: 0, count: fine)
    private(set) var splitHosts = 0
    /// Of the hosts that are split.
    private(set) var parts = 0
    let urlsOfLargest: Double
    private let settings: Settings

    init(_ settings: Settings) {
        self.settings = settings
        var harmonic = 0.0
        for rank in 1...settings.hosts { harmonic += 1 / Double(rank) }
        urlsOfLargest = settings.urls / harmonic
        for rank in 1...settings.hosts { add(rank) }
    }

    private mutating func add(_ rank: Int) {
        let count = urlsOfLargest / Double(rank)
        let hash = hash(rank)
        let parts = parts(of: rank)
        if parts > 1 {
            splitHosts += 1
            self.parts += parts
        }
        for part in 0..<parts {
            let place = place(hash, part, of: parts)
            let rate = Double(share(part, of: parts)) / (latency(hash) * Model.meanNoise)
            hosts[place] += 1 / Double(parts)
            urls[place] += count / Double(parts)
            urlsInTime[place] += min(count / Double(parts), rate * settings.evenTime)
        }
    }

    private func hash(_ rank: Int) -> UInt64 { mixed(UInt64(rank) &* 0xD6E8_FEB8_6659_FD93 ^ mixed(settings.seed)) }
    private func latency(_ hash: UInt64) -> Double { Model.latencies[Int(hash >> 20 & 1023)] }

    /// The fine bucket: the first 16 bits of the hash.
    private func place(_ hash: UInt64, _ part: Int, of parts: Int) -> Int {
        Int((parts == 1 ? hash : mixed(hash &+ UInt64(part) &+ 1)) >> 48)
    }

    /// One, unless the host has more URLs than one machine fetches in the time, or than `Settings.split` allows.
    private func parts(of rank: Int) -> Int {
        let machines = urlsOfLargest / Double(rank) / (Model.itemsPerSecond * settings.evenTime)
        let parts = (machines * Double(settings.split)).rounded(.up)
        return Int(max(1, min(parts, Double(settings.perHost))))
    }

    private func share(_ part: Int, of parts: Int) -> Int {
        settings.perHost / parts + (part < settings.perHost % parts ? 1 : 0)
    }

    /// The parts of the host of this rank, which is called `number` in the sample.
    func sample(_ rank: Int, as number: Int, buckets: Int) -> [Part] {
        let hash = hash(rank)
        let parts = parts(of: rank)
        return (0..<parts).map { part in
            Part(
                host: number, bucket: place(hash, part, of: parts) / (Self.fine / buckets),
                share: share(part, of: parts), latency: latency(hash))
        }
    }

    /// Sums over coarser buckets.
    static func added(_ values: [Double], buckets: Int) -> [Double] {
        let width = fine / buckets
        return (0..<buckets).map { values[($0 * width)..<(($0 + 1) * width)].reduce(0, +) }
    }
}
