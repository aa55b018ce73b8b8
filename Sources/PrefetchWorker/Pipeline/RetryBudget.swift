internal import Synchronization

/// How many retries a host gets, so that one which fails at everything isn't asked many times over by thousands of items.
///
/// A bucket for each host: so many at once, and then so many a second. Who finds it empty waits longer; no try is lost.
final class RetryBudget: Sendable {
    static let burst = 60.0
    static let perSecond = 10.0

    private struct Bucket {
        var tokens = RetryBudget.burst
        var filledAt: Int64
    }

    private let buckets = Mutex<[String: Bucket]>([:])

    /// Takes a retry out of a host's budget.
    ///
    /// - Parameter now: monotonic milliseconds.
    /// - Returns: milliseconds to wait on top until the budget allows it.
    func take(_ host: String, now: Int64) -> Int64 {
        buckets.withLock { buckets in
            // Full buckets are as good as none.
            if buckets.count > 10_000 { buckets = buckets.filter { $0.value.tokens < 0 } }
            var bucket = buckets[host] ?? Bucket(filledAt: now)
            let earned = Double(max(0, now - bucket.filledAt)) / 1_000 * Self.perSecond
            bucket.tokens = min(Self.burst, bucket.tokens + earned) - 1
            bucket.filledAt = now
            buckets[host] = bucket
            return bucket.tokens >= 0 ? 0 : Int64(-bucket.tokens / Self.perSecond * 1_000)
        }
    }
}
