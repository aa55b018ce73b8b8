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

    /// What follows a failed try.
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
    ///   - retryAfter: what the origin asked for, in milliseconds; obeyed as a minimum, up to an hour.
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
