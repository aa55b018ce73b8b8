/// The hosts whose requests are simulated one by one. They never run out of URLs, so each of them always has as many
/// requests as it may have.
struct HostSample {
    private(set) var parts: [Part] = []
    /// The parts in each bucket.
    private(set) var partsOf: [[Int]]
    var inFlight: [Int] = []

    /// Chooses the largest hosts, and random ones: one in each bucket without any of these if the run is detailed, 300
    /// otherwise.
    init(_ population: Population, _ settings: Settings, buckets: Int, isDetailed: Bool, _ random: inout Random) {
        partsOf = [[Int]](repeating: [], count: buckets)
        let largest = min(settings.hosts / 2, isDetailed ? 256 : 100)
        for rank in 1...largest { add(population.sample(rank, as: rank - 1, buckets: buckets)) }
        var number = largest
        // With 20 random hosts for each bucket, hardly any bucket stays without one.
        for _ in 0..<(isDetailed ? 20 * buckets : 300) {
            let rank = largest + 1 + random.below(settings.hosts - largest)
            let host = population.sample(rank, as: number, buckets: buckets)
            if isDetailed, !partsOf[host[0].bucket].isEmpty { continue }
            add(host)
            number += 1
        }
        inFlight = [Int](repeating: 0, count: number)
    }

    private mutating func add(_ host: [Part]) {
        for part in host {
            partsOf[part.bucket].append(parts.count)
            parts.append(part)
        }
    }
}
