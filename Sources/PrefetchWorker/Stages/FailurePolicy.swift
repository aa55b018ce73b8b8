internal import Core
internal import Download
internal import Jobs
internal import Synchronization

/// Decides how a failed item ends: another try, failed, or back to the queue.
final class FailurePolicy: Sendable {
    let settings: StageSettings
    let downloader: Downloader
    let disk: DiskWatch
    let budget: CacheBudget
    let reports: JobReports
    let retryBudget = RetryBudget()

    init(
        settings: StageSettings, downloader: Downloader, disk: DiskWatch, budget: CacheBudget, reports: JobReports,
    ) {
        self.settings = settings
        self.downloader = downloader
        self.disk = disk
        self.budget = budget
        self.reports = reports
    }

    /// Whether the whole body of an answer has arrived. If the protocol doesn't mark the body's end, the body counts as
    /// whole when the item's last request brought the same number of bytes: two connections hardly break off at the
    /// same byte.
    func isWhole(_ response: DownloadResponse, _ item: ClaimedItem) async -> Bool {
        if response.isWhole { return true }
        guard item.attempts > 0, response.bytesReceived > 0 else { return false }
        // If the database can't be read, the item is tried again.
        do { return try await reports.lastReceived(item: item.id) == response.bytesReceived } catch _ { return false }
    }

    /// - Parameter afterFetch: whether the origin failed, so that the retry counts against its host's budget.
    func ending(of failure: Failure, _ item: ClaimedItem, _ plan: JobPlan, afterFetch: Bool) -> ItemEnding {
        // The worker is stopping or the job was cancelled; the lease's fence decides which of the two.
        if failure.failureClass == .cancelled { return .release }
        var record = failure
        record.response = nil
        let retryAfter = failure.retryAfter?.milliseconds
        if afterFetch, let retryAfter, retryAfter > 0, failure.failureClass.treatment == .retry {
            record.blocksHostUntil = settings.now() + retryAfter
        }
        let host = failure.host ?? HostNames.name(ofURL: item.url)
        let decision = plan.retries(settings.retries, settings.live.values).decide(
            failure.failureClass, attempts: failure.isFinal ? .max - 1 : item.attempts, retryAfter: retryAfter)
        switch decision {
        case .putBack:
            return putBack(failure)
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

    /// The ending of an item that cannot go on because of the disk or the cache. It uses up no try.
    private func putBack(_ failure: Failure) -> ItemEnding {
        // Another file may have got space since, so the shortage may be over.
        let shortage = budget.reasonOfShortage ?? (failure.isAtCacheLimit ? failure.message : nil)
        if let shortage, !budget.isStuck, !disk.isInTrouble {
            return budget.shortageEnding(shortage, now: settings.now())
        }
        disk.report(shortage ?? failure.message)
        return .release
    }
}

/// Limits the retries of a host, so that thousands of items do not each retry a host that fails at everything.
///
/// A token bucket for each host: a burst of retries, and then a number a second. If it is empty, the item waits longer;
/// no try is lost.
final class RetryBudget: Sendable {
    static let burst = 60.0
    static let perSecond = 10.0

    private struct Bucket {
        var tokens = RetryBudget.burst
        var filledAt: Int64

        mutating func fill(_ now: Int64) {
            let earned = Double(max(0, now - filledAt)) / 1_000 * RetryBudget.perSecond
            tokens = min(RetryBudget.burst, tokens + earned)
            filledAt = now
        }
    }

    /// Bounds the memory.
    private static let maxBuckets = 10_000

    private let buckets = Mutex<[String: Bucket]>([:])

    /// Takes a retry from a host's budget.
    ///
    /// - Parameter now: monotonic milliseconds.
    /// - Returns: milliseconds of additional delay until the budget allows it.
    func take(_ host: String, now: Int64) -> Int64 {
        buckets.withLock { buckets in
            if buckets.count > Self.maxBuckets { forget(&buckets, now) }
            var bucket = buckets[host] ?? Bucket(filledAt: now)
            bucket.fill(now)
            bucket.tokens -= 1
            buckets[host] = bucket
            return bucket.tokens >= 0 ? 0 : Int64(-bucket.tokens / Self.perSecond * 1_000)
        }
    }

    /// Drops the buckets that are full again, since a new bucket is full, too. If more than half of the maximum are
    /// left, it also drops all buckets that owe no retry.
    private func forget(_ buckets: inout [String: Bucket], _ now: Int64) {
        for host in buckets.keys { buckets[host]?.fill(now) }
        buckets = buckets.filter { $0.value.tokens < Self.burst }
        if buckets.count > Self.maxBuckets / 2 { buckets = buckets.filter { $0.value.tokens < 0 } }
    }
}
