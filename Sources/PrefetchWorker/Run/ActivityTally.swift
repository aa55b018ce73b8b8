internal import Core
internal import Jobs

/// The counts of a worker since it last added them to the database's counters.
///
/// Arrays and numbers in place of ``ActivityCounts``, whose keys would have to be hashed for every item.
struct ActivityTally: Sendable {
    /// The number of durations within each bound and above the last bound, and the sum of all durations.
    private struct Histogram {
        var counts = [Int64](repeating: 0, count: ActivityCounts.bounds.count + 1)
        var sum = Duration.zero

        mutating func add(_ time: Duration?) {
            guard let time else { return }
            let seconds = time.inSeconds
            counts[ActivityCounts.bounds.firstIndex { seconds <= $0 } ?? ActivityCounts.bounds.count] += 1
            sum += time
        }
    }

    private var done: Int64 = 0
    private var cached: Int64 = 0
    private var blacklisted: Int64 = 0
    private var failed: [FailureClass: Int64] = [:]
    private var retried: [FailureClass: Int64] = [:]
    private var transforms: [String: Int64] = [:]
    /// By the first digit of the status; the first is for requests without an answer.
    private var requests = [Int64](repeating: 0, count: 10)
    private var received: Int64 = 0
    private var (fetching, waiting, transforming, publishing) = (Histogram(), Histogram(), Histogram(), Histogram())

    mutating func count(_ ending: ItemEnding, _ measure: ItemMeasure) {
        switch ending {
        case .done(let completion):
            if completion.isCached { cached += 1 } else { done += 1 }
            for variant in completion.newVariants { transforms[variant.format, default: 0] += 1 }
        case .failed(let failure): failed[failure.failureClass, default: 0] += 1
        case .blacklisted: blacklisted += 1
        case .retry(_, let failure, _), .fallBack(let failure): retried[failure.failureClass, default: 0] += 1
        case .wait, .release: break
        }
        if let request = measure.request {
            requests[max(0, min((request.status ?? 0) / 100, 9))] += 1
            received = received &+ min(request.received, 1 << 50)
            fetching.add(request.time)
        }
        waiting.add(measure.waiting)
        transforming.add(measure.transforming)
        publishing.add(measure.publishing)
    }

    /// Counts an item that ended because workers died of it.
    mutating func countWorkerCrash() { failed[.workerCrash, default: 0] += 1 }

    /// The same counts in the form in which the database stores them.
    var counts: ActivityCounts {
        var counts = ActivityCounts()
        counts.add(done, to: .ended, "done")
        counts.add(cached, to: .ended, "cached")
        counts.add(blacklisted, to: .ended, "blacklisted")
        for (failure, count) in failed { counts.add(count, to: .ended, "failed \(failure.rawValue)") }
        for (failure, count) in retried { counts.add(count, to: .retries, failure.rawValue) }
        for (format, count) in transforms { counts.add(count, to: .transforms, format) }
        for (digit, count) in requests.enumerated() {
            counts.add(count, to: .requests, digit == 0 ? "none" : "\(digit)xx")
        }
        counts.add(received, to: .received)
        for (counter, histogram) in [
            (Counter.fetching, fetching), (.waiting, waiting), (.transforming, transforming),
            (.publishing, publishing),
        ] {
            counts.add(times: histogram.counts, sum: histogram.sum, to: counter)
        }
        return counts
    }
}
