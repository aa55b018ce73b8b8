import ArgumentParser
import Core
import Jobs

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Shows the progress of jobs.",
        discussion: """
            EXAMPLES:
              worker status
              worker status 7 --watch
              worker status --json | jq '.[] | select(.failed > 0)'
            """,
    )

    @OptionGroup var common: CommonOptions

    @Argument(
        help: "One job; without it, unfinished jobs and the latest others.", transform: { try JobNumber.read($0) })
    var job: Int64?

    @Flag(help: "Redraw the progress until the job has ended; without a terminal print a line every 10 s.")
    var watch = false

    @Flag(help: "Print JSON: an array, or one object for one job.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            try await common.readingStore { store in
                if watch, !json {
                    try await draw(store)
                    if job != nil { _ = try await show(store) }
                    return
                }
                var isOpen = try await show(store)
                while watch, isOpen {
                    try await Task.sleep(for: .seconds(1))
                    isOpen = try await show(store)
                }
            }
        }
    }

    /// Shows a line for each busy job, or for the one that is named, until it has ended.
    private func draw(_ store: JobStore) async throws {
        let display = Terminal.outputIsTerminal ? LiveDisplay(isOutput: true) : nil
        defer { display?.finish() }
        var screen = JobScreen(job: job)
        while true {
            if let job {
                guard let progress = try await store.reports.progress(job: job) else { throw Self.unknown(job) }
                guard progress.state.isOpen else { return }
            }
            let lines = try await screen.lines(store, width: display?.width ?? 200, .ofOutput)
            if let display { display.draw(lines) } else { lines.forEach { Terminal.print($0) } }
            try await Task.sleep(for: display == nil ? .seconds(10) : .milliseconds(500))
        }
    }

    private static func unknown(_ job: Int64) -> JobsError {
        JobsError(.notFound, "There is no job \(job). List the jobs with: worker status")
    }

    /// - Returns: whether the state may still change.
    private func show(_ store: JobStore) async throws -> Bool {
        if let since = try await store.reports.suspendedSince() {
            let sentence =
                "All jobs have been paused since \(Output.time(since)). Resume them with: worker resume --all"
            if json { Terminal.error("worker: \(sentence)") } else { Terminal.print(sentence) }
        }
        guard let job else {
            let jobs = try await store.reports.progress()
            if json {
                Terminal.print(try Output.json(jobs))
            } else if jobs.isEmpty {
                Terminal.print("No jobs. Add one with: worker enqueue URL…")
            } else {
                Self.table(jobs).forEach(Terminal.print)
                try await showWaits(store)
            }
            if !json, let warning = Self.warning(try await store.maintenance.logState(), at: store.database.currentTime)
            {
                Terminal.error("worker: \(warning)")
            }
            return true
        }
        guard let progress = try await store.reports.progress(job: job) else { throw Self.unknown(job) }
        if json {
            Terminal.print(try Output.json(progress))
        } else {
            Self.details(progress).forEach(Terminal.print)
            if let notice = try await store.notices.notice(ofJob: job) { Terminal.print(Self.line(notice)) }
            try await showWaits(store)
        }
        return progress.state.isOpen
    }

    /// Prints how many items wait for which hosts, and for how long at most.
    private func showWaits(_ store: JobStore) async throws {
        let waits = WaitSummary(try await store.hosts.waits(job: job), now: store.database.currentTime)
        waits.lines.forEach { Terminal.print(Terminal.safe($0)) }
    }

    /// A warning about a program that has been reading for so long that the database's log grows.
    private static func warning(_ log: LogState, at now: WallTime) -> String? {
        guard let since = log.heldSince else { return nil }
        let who = log.holders.isEmpty ? "another program" : Terminal.safe(log.holders)
        let age = Output.duration(seconds: Double(max(0, now - since)) / 1_000)
        return """
            The database's log has grown to \(Output.bytes(log.bytes)): \(who) has kept a read transaction open for \(age). \
            Workers continue; SQLite truncates the log after that program has ended its transaction.
            """
    }

    private static func table(_ jobs: [JobProgress]) -> [String] {
        let rows = jobs.map { job in
            [
                "\(job.job)", Terminal.safe(job.name ?? ""), job.state.rawValue, "\(job.priority)",
                "\(job.ended)/\(job.total)", "\(Output.fixed(job.percent, 1)) %", "\(job.done)", "\(job.cached)",
                "\(job.failed + job.blacklisted)", "\(job.active)", "\(job.delayed)", Output.bytes(job.bytes),
            ]
        }
        let header = [
            "job", "name", "state", "prio", "ended", "", "done", "cached", "failed", "active", "delayed", "bytes",
        ]
        return Output.table(header, rows, right: [0, 3, 4, 5, 6, 7, 8, 9, 10, 11])
    }

    private static func line(_ notice: NoticeRecord) -> String {
        let reason = notice.message.map { ": \(Terminal.safe($0))" } ?? ""
        return switch notice.state {
        case .sent: "notice sent"
        case .failed: "notice not accepted after \(Output.count(notice.attempts, "attempt"))\(reason)"
        case .waiting: "notice due at \(notice.dueAt.map(Output.time) ?? "?")\(reason)"
        }
    }

    private static func details(_ job: JobProgress) -> [String] {
        var lines = [
            "job \(job.job)\(job.name.map { " (\(Terminal.safe($0)))" } ?? ""): \(job.state.rawValue), \(job.ended) of \(job.total) ended "
                + "(\(Output.fixed(job.percent, 1)) %)",
            "done \(job.done), cached \(job.cached), failed \(job.failed), blacklisted \(job.blacklisted), cancelled \(job.cancelled)",
            "queued \(job.queued), active \(job.active), delayed \(job.delayed); \(Output.bytes(job.bytes)) downloaded",
        ]
        if job.notNew > 0 { lines.append("left out by only-new \(job.notNew)") }
        let times = [("created", job.createdAt), ("started", job.startedAt), ("finished", job.finishedAt)]
        lines.append(times.compactMap { name, time in time.map { "\(name) \($0)" } }.joined(separator: ", "))
        if let error = job.error { lines.append("error: \(Terminal.safe(error))") }
        return lines
    }
}
