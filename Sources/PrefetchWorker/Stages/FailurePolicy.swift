internal import Core
internal import Download
internal import Jobs
internal import Synchronization

/// Decides how an item ends that has failed: another try, its end, or back to the queue.
struct FailurePolicy: Sendable {
    let settings: StageSettings
    let downloader: Downloader
    let disk: DiskWatch
    let budget: CacheBudget
    let retryBudget = RetryBudget()

    /// - Parameter afterFetch: whether the origin has failed, so that its host is to be spared.
    func ending(of failure: Failure, _ item: ClaimedItem, _ plan: JobPlan, afterFetch: Bool) -> ItemEnding {
        // The worker is stopping or the job is gone; the lease's fence sorts out which.
        if failure.failureClass == .cancelled { return .release }
        var record = failure
        record.response = nil
        let retryAfter = failure.retryAfter?.milliseconds
        if afterFetch, let retryAfter, retryAfter > 0, failure.failureClass.treatment == .retry {
            record.blocksHostUntil = settings.now() + retryAfter
        }
        let host = failure.host ?? HostNames.name(ofURL: item.url)
        let decision = plan.retries(settings.retries).decide(
            failure.failureClass, attempts: failure.isFinal ? .max - 1 : item.attempts, retryAfter: retryAfter)
        switch decision {
        case .putBack:
            return putBack(failure.message)
        case .end:
            return .failed(settings.limits.explained(record))
        case .retry where failure.failureClass.isUnreachable && downloader.givenUp(host) != nil:
            record.isListed = nil
            return .failed(record)
        case .retry(let delay):
            record.isListed = nil
            let host = failure.host ?? URLText.host(item.url)
            let wait = afterFetch ? min(retryBudget.take(host, now: monotonicMilliseconds()), 3_600_000) : 0
            return .retry(at: settings.now() + max(delay, wait), record, blockingHost: false)
        }
    }

    /// The end of an item that can't go on for a reason of the disk's or the cache's. It isn't counted as a try.
    private func putBack(_ reason: String) -> ItemEnding {
        let shortage = budget.reasonOfShortage
        if let shortage, !budget.isStuck, !disk.isInTrouble { return budget.putOff(shortage, now: settings.now()) }
        disk.report(shortage ?? reason)
        return .release
    }
}

/// How many retries a host gets, so that one which fails at everything isn't asked many times over by thousands of items.
///
/// A token bucket for each host: so many at once, and then so many a second. An item that finds it empty waits longer; no
/// try is lost.
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
