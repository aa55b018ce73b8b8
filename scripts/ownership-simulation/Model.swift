import Glibc

/// A hundredth of a second.
typealias Tick = Int
let ticksPerSecond = 100

func ticks(_ seconds: Double) -> Tick { Tick((seconds * Double(ticksPerSecond)).rounded()) }

/// The figures of the model. They are assumed, unless a source is named.
enum Model {
    /// Images of one machine, as docs/reference/performance.md has them: 600 in 5.4 s.
    static let itemsPerSecond = 111.0
    /// Requests of a worker that are in flight, over all its hosts.
    static let inFlight = 64
    static let poll = ticks(1)
    static let heartbeat = ticks(5)
    /// An owner starts no more requests when its lease lasts fewer seconds than this.
    static let stop = 8.0
    /// An owner closes the requests in flight when its lease lasts fewer seconds than this.
    static let abort = 3.0
    /// How long an owner drains a bucket before it closes the requests in flight.
    static let drain = ticks(5)
    /// No request takes longer.
    static let deadline = ticks(60)
    /// How many seconds the clock of a worker is slow that breaks `BrokenRule.wrongClock`.
    static let slowClock = 60.0

    /// When the database misses the connection of a program that died. Measured with PostgreSQL 15: its lock was gone
    /// after 37 ms.
    static let deathNoticed = ticks(0.04)
    /// The same if the connection was busy with a query. Measured with PostgreSQL 15: its lock was still held after
    /// 14 s.
    static let lateDeathNoticed = ticks(14)

    /// Seconds that hosts take to answer: 0.2 in the median, and less than 0.05 or more than 0.8 at one host in 20.
    static let latencies = quantiles(median: 0.2, sigma: 0.7)
    /// What a request takes, relative to its host's latency; one request in 1,000 takes `slowSeconds` instead.
    static let noise = quantiles(median: 1, sigma: 0.5)
    static let slowShare = 0.001
    static let slowSeconds = (least: 5.0, most: 60.0)
    /// The mean of `noise`: exp(sigma² / 2).
    static let meanNoise = exp(0.125)
    /// The slow ones of the requests that are in flight at a moment: 32.5 s is the mean of `slowSeconds`, and
    /// 0.2 s × exp(0.245) that of `latencies`.
    static let slowInFlight = slowShare * 32.5 / (slowShare * 32.5 + 0.2 * exp(0.245) * meanNoise)

    /// 1,024 values of a lognormal distribution, from the least to the greatest.
    private static func quantiles(median: Double, sigma: Double) -> [Double] {
        var random = Random(state: 7)
        let values = (0..<65_536).map { _ in median * exp(sigma * random.normal()) }.sorted()
        return (0..<1024).map { values[$0 * 64 + 32] }
    }
}
