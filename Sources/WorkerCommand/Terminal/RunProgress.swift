import Core
import Glibc
import Jobs
import PrefetchWorker

/// Shows the progress of a run: on a terminal a line for each busy job, with hosts that wait and failures below them; a
/// line every ten seconds elsewhere.
struct RunProgress {
    let statistics: RunStatistics
    let store: JobStore
    let display: LiveDisplay?

    /// Runs until its task is cancelled.
    func run() async {
        if let display { await draw(on: display) } else { await tell() }
    }

    // MARK: - A terminal

    private func draw(on display: LiveDisplay) async {
        var screen = JobScreen()
        while !Task.isCancelled {
            // Best effort: the run itself reports a database that cannot be read.
            if let lines = try? await screen.lines(store, width: display.width, .ofError) { display.draw(lines) }
            // Cancellation cuts the nap short and ends the loop.
            try? await Task.sleep(for: .milliseconds(250))
        }
        // The items that ended since; best effort as above.
        if let lines = try? await screen.lines(store, width: display.width, .ofError, isLast: true) {
            display.draw(lines)
        }
        display.finish()
    }

    // MARK: - A pipe

    private func tell() async {
        var last = ""
        var before = (time: Self.seconds(), counts: statistics.counts)
        while !Task.isCancelled {
            // Best effort: cancellation ends the sleep and the loop, and the run itself reports a database that can't be read.
            try? await Task.sleep(for: .seconds(10))
            guard !Task.isCancelled, let backlog = try? await store.reports.backlog() else { continue }
            let now = (time: Self.seconds(), counts: statistics.counts)
            // Best effort: without this the line shows no waits.
            let waits = WaitSummary((try? await store.hosts.waits()) ?? [], now: store.database.currentTime)
            let text = Self.describe(now.counts, backlog, waits, since: before, seconds: now.time - before.time)
            before = now
            if text != last { Terminal.error(text) }
            last = text
        }
    }

    private static func describe(
        _ counts: RunStatistics.Counts, _ backlog: Backlog, _ waits: WaitSummary,
        since before: (time: Double, counts: RunStatistics.Counts), seconds: Double,
    ) -> String {
        let left = backlog.queued + backlog.active + backlog.delayed
        let rate = seconds > 0 ? Double(counts.ended - before.counts.ended) / seconds : 0
        let bytes = seconds > 0 ? Double(counts.bytes - before.counts.bytes) / seconds : 0
        var parts = ["\(counts.ended)/\(counts.ended + left)", "\(Output.fixed(rate, 1))/s"]
        if bytes >= 1 { parts.append(Output.bytes(perSecond: bytes)) }
        if counts.cached > 0 { parts.append("\(counts.cached) cached") }
        if counts.failed + counts.blacklisted > 0 { parts.append("\(counts.failed + counts.blacklisted) failed") }
        if let short = waits.short {
            parts.append(short)
        } else if backlog.delayed > 0 {
            parts.append("\(backlog.delayed) wait for another try")
        }
        // The rate of other items does not tell how long hosts keep their items waiting.
        if rate > 0, left > 0, waits.items == 0, backlog.delayed == 0 {
            parts.append("\(Output.duration(seconds: Double(left) / rate)) left")
        }
        return parts.joined(separator: "  ")
    }

    /// Seconds of a clock that doesn't jump.
    static func seconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

/// The busy jobs of a database, drawn in place: a line for each, then what waits and what failed.
struct JobScreen {
    private static let maxJobs = 5

    /// The only job that is shown; nil for all busy ones.
    private let job: JobID?
    private var rates = JobRates()
    private var waits: [HostWaits] = []
    private var failures = ""
    private var failedBefore = -1
    private var looked = 0.0
    private var counted = 0.0
    /// Jobs that were open during the run; at the end it prints how they ended.
    private var seen: Set<JobID> = []

    init(job: JobID? = nil) {
        self.job = job
        seen = Set([job].compactMap { $0 })
    }

    /// - Parameters:
    ///   - width: the columns of the terminal; no line is longer.
    ///   - isLast: whether the jobs are shown as they ended, without what waits.
    mutating func lines(
        _ store: JobStore, width: Int, _ colours: Colours, isLast: Bool = false,
    ) async throws(JobsError) -> [String] {
        let now = RunProgress.seconds()
        let jobs = try await jobs(store)
        let open = jobs.filter(\.state.isOpen)
        seen.formUnion(open.map(\.job))
        let shown = jobs.filter { seen.contains($0.job) }
        rates.note(shown, at: now)
        if now - looked >= 1, !isLast {
            looked = now
            // Only waits for hosts are shown. Waits for helpers and the like, whose names have a space, are normal.
            waits = try await store.hosts.waits(job: job).filter { !$0.host.contains(" ") }
        }
        try await countFailures(of: shown, at: now, store)
        // Those at work first, then those that wait.
        let busy = isLast ? shown : open.filter { $0.active > 0 } + open.filter { $0.active == 0 }
        let others = busy.count - Self.maxJobs
        var lines = busy.prefix(Self.maxJobs).map { job in
            JobLine(job: job, rate: rates.rate(of: job.job), waits: !waits.isEmpty).text(width: width, colours)
        }
        if others > 0 { lines.append(colours.dim(Self.cut("and \(Output.count(others, "other job"))", width))) }
        if isLast { return lines }
        if lines.isEmpty { lines.append(colours.dim(Self.cut("waiting for work", width))) }
        let waiting = WaitSummary(waits, now: store.database.currentTime).lines.prefix(4)
        lines += waiting.map { colours.yellow(Self.cut(Terminal.safe($0), width)) }
        if !failures.isEmpty { lines.append(colours.red(Self.cut("failed: \(failures)", width))) }
        return lines
    }

    private func jobs(_ store: JobStore) async throws(JobsError) -> [JobProgress] {
        guard let job else { return try await store.reports.progress() }
        return try await [store.reports.progress(job: job)].compactMap { $0 }
    }

    /// At most every five seconds, since a job may have a million.
    private mutating func countFailures(of jobs: [JobProgress], at now: Double, _ store: JobStore)
        async throws(JobsError)
    {
        let failed = jobs.reduce(0) { $0 + $1.failed + $1.blacklisted }
        guard failed != failedBefore, now - counted >= 5 || failedBefore <= 0 else { return }
        (failedBefore, counted) = (failed, now)
        let ids = jobs.filter { $0.failed + $0.blacklisted > 0 }.prefix(Self.maxJobs).map(\.job)
        failures = ids.isEmpty ? "" : try await FailureCounts(of: Array(ids), in: store).byClass
    }

    private static func cut(_ text: String, _ width: Int) -> String {
        TextWidth.columns(text) <= width ? text : TextWidth.prefix(text, width - 1) + "…"
    }
}
