public import Core

/// Decides when a failed item is tried again: exponential backoff with full jitter, so that a thousand items that
/// failed together are spread out (AWS, "Exponential Backoff And Jitter").
public struct RetryPolicy: Sendable {
    /// Maximum tries, including the first.
    public var maxTries: Int
    /// The upper bound of the first wait, in milliseconds; it doubles with every try.
    public var base: Int64
    /// The upper bound of any wait, in milliseconds.
    public var cap: Int64
    private let random: @Sendable (ClosedRange<Int64>) -> Int64

    public init(
        maxTries: Int = 4,
        base: Int64 = 1_000,
        cap: Int64 = 60_000,
        random: @escaping @Sendable (ClosedRange<Int64>) -> Int64 = { Int64.random(in: $0) },
    ) {
        self.maxTries = maxTries
        self.base = base
        self.cap = cap
        self.random = random
    }

    /// The decision after a failed try.
    public enum Decision: Hashable, Sendable {
        /// Tries again after this many milliseconds.
        case retry(after: Int64)
        /// Ends the item with the failure's class.
        case end
        /// Queues the item again; the try does not count.
        case putBack
    }

    /// - Parameters:
    ///   - attempts: earlier failed tries.
    ///   - retryAfter: the origin's `Retry-After` in milliseconds; a minimum, up to an hour.
    public func decide(_ failure: FailureClass, attempts: Int, retryAfter: Int64? = nil) -> Decision {
        switch failure.treatment {
        case .putBack:
            return .putBack
        case .end, .blacklist:
            return .end
        case .retry, .retryThenBlacklist:
            guard attempts < maxTries - 1 else { return .end }
            let ceiling = min(cap, min(base, cap) << Int64(min(max(attempts, 0), 20)))
            return .retry(after: max(random(0...max(ceiling, 0)), min(max(retryAfter ?? 0, 0), 3_600_000)))
        }
    }
}

/// Finds the item that kills workers, among the items that were active when a worker died.
///
/// Each such death raises an item's `deaths` by one. The more deaths an item has, the fewer others are in flight with
/// it: 64 or twice the concurrency (whichever is more), 16, 4, then none. The guilty item is present at each death, so
/// after four deaths it runs alone; from then on, only deaths while it runs alone count.
public enum Suspicion {
    /// From this number of deaths on, an item runs alone.
    static let alone = 4
    /// At this number the item ends: three workers died while it ran alone.
    static let guilty = alone + 3

    /// Maximum items in flight while one of them has this many deaths.
    public static func window(deaths: Int) -> Int {
        deaths >= alone ? 1 : max(1, 256 >> (2 * min(max(deaths, 0), alone)))
    }

    /// How long a worker must live before it claims an item with this many deaths, in milliseconds. Kills from outside
    /// often come before that, and so do not end an innocent item.
    public static func delay(deaths: Int) -> Int64 { deaths < 2 ? 0 : 1_000 * Int64(min(deaths, alone) - 1) }
}

/// Limits claims while items are in flight that were active when a worker died.
public struct Caution: Sendable {
    /// Items in flight.
    public let inFlight: Int
    /// Whether one of them was active when a worker died.
    public let hasSuspects: Bool
    /// Maximum items in flight while there is such an item.
    public let window: Int

    public init(inFlight: Int, hasSuspects: Bool, window: Int) {
        self.inFlight = inFlight
        self.hasSuspects = hasSuspects
        self.window = window
    }

    static let none = Caution(inFlight: 0, hasSuspects: false, window: .max)
}
