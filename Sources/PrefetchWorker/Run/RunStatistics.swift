internal import Core
public import Jobs
internal import Synchronization

/// Counts a run's items as they end.
public final class RunStatistics: Sendable {
    public struct Counts: Hashable, Sendable {
        public var done = 0
        public var cached = 0
        public var failed = 0
        public var blacklisted = 0
        public var retried = 0
        public var released = 0
        /// Failures of origins that could not be reached at all.
        public var unreachable = 0
        /// Bytes of sources that were downloaded and kept or used.
        public var bytes: Int64 = 0

        public var ended: Int { done + cached + failed + blacklisted }
    }

    private let state = Mutex((counts: Counts(), jobs: Set<JobID>()))
    private let begun = Atomic<Bool>(false)
    /// The counts since they were last taken, and those that could not be written then.
    private let activity = Mutex((tally: ActivityTally(), left: ActivityCounts()))

    public var counts: Counts { state.withLock { $0.counts } }

    /// Maximum jobs that are remembered, since a worker may run for ever.
    static let maxJobs = 10_000

    /// The jobs of this run's items; if there were too many, the newest, at least half of the maximum.
    public var jobs: Set<JobID> { state.withLock { $0.jobs } }

    /// Whether the worker is registered and its services run.
    public var hasBegun: Bool { begun.load(ordering: .relaxed) }

    func noteBeginning() { begun.store(true, ordering: .relaxed) }

    func saw(jobs: some Sequence<JobID>) {
        state.withLock { state in
            state.jobs.formUnion(jobs)
            guard state.jobs.count > Self.maxJobs else { return }
            state.jobs = Set(state.jobs.sorted().suffix(Self.maxJobs / 2))
        }
    }

    /// Counts an item that failed as `worker-crash`: its last worker died while the item ran alone.
    func countWorkerCrash(of job: JobID) {
        saw(jobs: [job])
        state.withLock { $0.counts.failed += 1 }
        activity.withLock { $0.tally.countWorkerCrash() }
    }

    /// Takes the counts since the last call.
    func takeActivity() -> ActivityCounts {
        let (tally, left) = activity.withLock { activity in
            defer { activity = (ActivityTally(), ActivityCounts()) }
            return activity
        }
        var counts = left
        counts.add(tally.counts)
        return counts
    }

    /// Keeps counts that could not be written for the next call of `takeActivity`.
    func putBack(_ counts: ActivityCounts) { activity.withLock { $0.left.add(counts) } }

    func count(_ ending: ItemEnding, _ measure: ItemMeasure = ItemMeasure()) {
        activity.withLock { $0.tally.count(ending, measure) }
        state.withLock { state in
            switch ending {
            case .done(let completion) where completion.isCached:
                state.counts.cached += 1
            case .done(let completion):
                state.counts.done += 1
                state.counts.bytes = min(state.counts.bytes + completion.source.size, 1 << 62)
            case .failed(let failure):
                state.counts.failed += 1
                if failure.failureClass.isUnreachable { state.counts.unreachable += 1 }
            case .blacklisted:
                state.counts.blacklisted += 1
            case .retry, .wait, .fallBack:
                state.counts.retried += 1
            case .release:
                state.counts.released += 1
            }
        }
    }
}
