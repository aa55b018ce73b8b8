internal import Core

/// The counters of workers. The raw value is the name of the metric, without `worker_` and `_total`.
public enum Counter: String, CaseIterable, Sendable {
    /// Items that ended; the label is the state, and for failures also the class: `failed http-404`.
    case ended = "items_ended"
    /// Requests to origins; the label is the first digit of the status and `xx`, or `none` without an answer.
    case requests
    /// Bytes of bodies, as they were transferred.
    case received = "received_bytes"
    /// Items that were put back for another try; the label is the class of the failure.
    case retries
    /// Renditions that were made; the label is the format.
    case transforms
    /// Helpers that died, or were killed because they took too long.
    case helperRestarts = "helper_restarts"
    /// Requests to the cache's bucket; the label is the kind and the first digit of the status: `put 2xx`, `get none`.
    case bucketRequests = "bucket_requests"
    /// Bytes of the files that were stored in the bucket.
    case bucketSent = "bucket_sent_bytes"
    /// Bytes of the bucket's answers.
    case bucketReceived = "bucket_received_bytes"
    /// Time from the request to the last byte.
    case fetching = "fetch_seconds"
    /// Time that an item waited for its host's limits, or for another item's fetch of the same URL.
    case waiting = "wait_seconds"
    /// Time from the source's bytes to its renditions, the wait for a helper included.
    case transforming = "transform_seconds"
    /// Time from the renditions to the durable end of the item.
    case publishing = "publish_seconds"

    public var isHistogram: Bool {
        switch self {
        case .fetching, .waiting, .transforming, .publishing: true
        default: false
        }
    }

    /// The name of the label that tells a counter's values apart; nil for a counter with a single value.
    public var labelName: String? {
        switch self {
        case .ended: "state"
        case .requests: "status"
        case .bucketRequests: "request"
        case .retries: "class"
        case .transforms: "format"
        default: nil
        }
    }
}

/// A counter's name and the label of one of its values.
public struct CounterKey: Hashable, Sendable {
    public let counter: Counter
    public let label: String

    public init(_ counter: Counter, _ label: String = "") {
        self.counter = counter
        self.label = label
    }
}

/// Counts by counter and label.
public struct ActivityCounts: Hashable, Sendable {
    public private(set) var values: [CounterKey: Int64] = [:]

    public init() {}

    public var isEmpty: Bool { values.isEmpty }

    /// Adds to a value, which saturates at `most`; no real count comes near that.
    public mutating func add(_ amount: Int64 = 1, to counter: Counter, _ label: String = "") {
        guard amount > 0 else { return }
        let sum = values[CounterKey(counter, label), default: 0].addingReportingOverflow(amount)
        values[CounterKey(counter, label)] = sum.overflow ? Self.most : min(sum.partialValue, Self.most)
    }

    /// Adds times that are already counted per bound; the last count is for times beyond the last bound.
    public mutating func add(times: [Int64], sum: Duration, to histogram: Counter) {
        for (index, count) in times.enumerated() {
            add(count, to: histogram, index < Self.bounds.count ? "\(Self.bounds[index])" : Self.beyond)
        }
        add(Int64(min(max(0, sum.inSeconds) * 1_000_000, 1e15)), to: histogram, Self.sum)
    }

    public mutating func add(_ other: ActivityCounts) {
        for (key, value) in other.values { add(value, to: key.counter, key.label) }
    }

    /// The sum of a counter's values, over all labels or those with this prefix. It saturates at `most`, since SQL may
    /// write any number of rows.
    public func total(of counter: Counter, labels prefix: String = "") -> Int64 {
        values.reduce(0) { total, one in
            guard one.key.counter == counter, one.key.label.hasPrefix(prefix) else { return total }
            return min(total + one.value, Self.most)
        }
    }

    /// A counter's values by label, in the labels' order.
    public func labels(of counter: Counter) -> [(label: String, value: Int64)] {
        values.compactMap { $0.key.counter == counter ? ($0.key.label, $0.value) : nil }.sorted { $0.0 < $1.0 }
    }

    /// The number of times up to each bound (cumulative), the number of all times, and their sum in seconds.
    public func histogram(_ counter: Counter) -> (upTo: [(bound: Double, count: Int64)], count: Int64, sum: Double) {
        var count: Int64 = 0
        let upTo = Self.bounds.map { bound in
            count += values[CounterKey(counter, "\(bound)"), default: 0]
            return (bound, count)
        }
        count += values[CounterKey(counter, Self.beyond), default: 0]
        return (upTo, count, Double(values[CounterKey(counter, Self.sum), default: 0]) / 1_000_000)
    }

    /// The smallest bound that at least this fraction of the times does not exceed, in seconds: an upper estimate. Nil
    /// without any time, or if the quantile lies beyond the last bound.
    public func quantile(_ part: Double, of counter: Counter) -> Double? {
        let (upTo, count, _) = histogram(counter)
        guard count > 0 else { return nil }
        return upTo.first { Double($0.count) >= part * Double(count) }?.bound
    }

    /// The bounds of histograms, in seconds: Prometheus' usual ones up to 10, and two more for slow origins.
    public static let bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
    /// The label of times beyond the last bound.
    static let beyond = "beyond"
    /// The label of a histogram's sum, in microseconds.
    static let sum = "sum"
    /// The largest value: up to it, a double (JavaScript's number) represents every integer exactly.
    static let most: Int64 = 1 << 53
}

/// The counts of one slot of the last hour.
public struct ActivitySlot: Hashable, Sendable {
    /// The UTC second at which the slot begins.
    public let start: Int64
    public let counts: ActivityCounts
}
