import Core
import Glibc
import Jobs
import PrefetchWorker

/// Shows the progress of a run: a bar with rate and remaining time on a terminal, a line every few seconds elsewhere.
struct RunProgress {
    let statistics: RunStatistics
    let store: JobStore
    let line: ProgressLine?
    private let started = seconds()

    init(statistics: RunStatistics, store: JobStore, line: ProgressLine?) {
        self.statistics = statistics
        self.store = store
        self.line = line
    }

    /// Runs until its task is cancelled.
    func run() async {
        var last = ""
        var total = 0
        var waits = WaitSummary([], now: WallTime(milliseconds: 0))
        var looked = 0.0
        var recent: [(time: Double, ended: Int)] = []
        while !Task.isCancelled {
            // Cancellation cuts the nap short and ends the loop.
            try? await Task.sleep(for: line == nil ? .seconds(5) : .milliseconds(200))
            guard !Task.isCancelled, let backlog = await backlog() else { continue }
            let counts = statistics.counts
            total = counts.ended + backlog.queued + backlog.active + backlog.delayed
            let now = Self.seconds()
            recent.append((now, counts.ended))
            while recent.count > 2, now - recent[0].time > 10 { recent.removeFirst() }
            if now - looked >= 1 {
                looked = now
                // Best effort: without this the line shows no waits. The run itself reports a database that doesn't
                // work.
                waits = WaitSummary((try? await store.hosts.waits()) ?? [], now: store.database.currentTime)
            }
            let text = describe(counts, backlog, rate: rate(recent), waits)
            if let line {
                line.draw(bar(counts, backlog) + text)
            } else if text != last {
                Terminal.error(text)
                last = text
            }
        }
        showEnd(of: total)
        line?.finish()
    }

    /// Shows the items that ended since the last update, before the bar goes.
    private func showEnd(of total: Int) {
        let counts = statistics.counts
        guard let line, counts.ended > 0 else { return }
        let left = Backlog(queued: max(0, total - counts.ended))
        line.draw(bar(counts, left) + describe(counts, left, rate: 0, WaitSummary([], now: WallTime(milliseconds: 0))))
    }

    private func backlog() async -> Backlog? {
        // Best effort: the run itself reports a database that cannot be read.
        try? await store.reports.backlog()
    }

    private func rate(_ recent: [(time: Double, ended: Int)]) -> Double {
        guard let first = recent.first, let last = recent.last, last.time > first.time else { return 0 }
        return Double(last.ended - first.ended) / (last.time - first.time)
    }

    private func describe(
        _ counts: RunStatistics.Counts, _ backlog: Backlog, rate: Double, _ waits: WaitSummary,
    ) -> String {
        let left = backlog.queued + backlog.active + backlog.delayed
        var parts = ["\(counts.ended)/\(counts.ended + left)", "\(Output.fixed(rate, 1))/s"]
        if counts.cached > 0 { parts.append("\(counts.cached) cached") }
        if counts.failed + counts.blacklisted > 0 { parts.append("\(counts.failed + counts.blacklisted) failed") }
        if let short = waits.short {
            parts.append(short)
        } else if backlog.delayed > 0 {
            parts.append("\(backlog.delayed) wait for another try")
        }
        parts.append(Output.bytes(counts.bytes))
        // The rate of other items does not tell how long hosts keep their items waiting.
        if rate > 0, left > 0, waits.items == 0, backlog.delayed == 0 {
            parts.append("\(Output.duration(seconds: Double(left) / rate)) left")
        }
        return parts.joined(separator: "  ")
    }

    private func bar(_ counts: RunStatistics.Counts, _ backlog: Backlog) -> String {
        let total = counts.ended + backlog.queued + backlog.active + backlog.delayed
        let width = min(30, max(0, Terminal.width - 70))
        guard width > 4, total > 0 else { return "" }
        let full = width * counts.ended / total
        return "[" + String(repeating: "#", count: full) + String(repeating: ".", count: width - full) + "] "
    }

    private static func seconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
