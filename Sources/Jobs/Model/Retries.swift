public import Core
internal import GRDB

/// When a failed item is tried again: exponential with full jitter, so that a thousand items that failed together don't
/// come back together (AWS, "Exponential Backoff And Jitter").
public struct RetryPolicy: Sendable {
    /// Tries in all, the first one included.
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
        /// Tried again after so many milliseconds.
        case retry(after: Int64)
        /// Ended with its class.
        case end
        /// Goes back to the queue; the try doesn't count.
        case putBack
    }

    /// - Parameters:
    ///   - attempts: tries that failed before this one.
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

/// Items that were active when a worker died, and how the one that kills workers is found among them.
///
/// Each such death raises an item's `deaths` by one, and the more deaths an item has seen, the fewer others are in
/// flight with it: 64, 16, 4, and then none. The guilty item is there at each death, so it runs alone after four; only
/// deaths while it runs alone count against it from then on.
public enum Suspicion {
    /// From so many deaths on an item runs alone.
    static let alone = 4
    /// With so many the item ends: three workers died while it ran alone.
    static let guilty = alone + 3

    /// Items in flight at most while one with so many deaths is among them.
    public static func window(deaths: Int) -> Int {
        deaths >= alone ? 1 : max(1, 256 >> (2 * min(max(deaths, 0), alone)))
    }

    /// How long a worker has to live before it claims an item with so many deaths, in milliseconds. Kills from outside
    /// come before that as often as after it, and so don't end an item that has only been there.
    public static func delay(deaths: Int) -> Int64 { deaths < 2 ? 0 : 1_000 * Int64(min(deaths, alone) - 1) }
}

/// How many items may be claimed beside those that were active when a worker died.
public struct Caution: Sendable {
    /// Items in flight.
    public let inFlight: Int
    /// Whether one of them was active when a worker died.
    public let hasSuspects: Bool
    /// Items in flight at most while one of them was.
    public let window: Int

    public init(inFlight: Int, hasSuspects: Bool, window: Int) {
        self.inFlight = inFlight
        self.hasSuspects = hasSuspects
        self.window = window
    }

    static let none = Caution(inFlight: 0, hasSuspects: false, window: .max)
}
