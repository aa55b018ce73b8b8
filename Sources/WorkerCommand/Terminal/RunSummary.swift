import ArgumentParser
import Jobs
import PrefetchWorker

/// The result of a run, for its summary.
struct RunReport {
    /// Maximum jobs whose failures are counted.
    private static let maxJobs = 20

    let summary: Worker.Summary
    /// Seconds.
    let elapsed: Double
    let failures: FailureCounts?
    /// Jobs with failed items whose URLs are on the blacklist.
    let listed: Set<JobID>

    /// - Parameter begun: when the run began, by ``RunProgress/seconds()``.
    static func of(
        _ result: Result<Worker.Summary, WorkerError>, since begun: Double, in store: JobStore, countsFailures: Bool,
    ) async throws(WorkerError) -> RunReport {
        let elapsed = RunProgress.seconds() - begun
        let summary = try result.get()
        let failed = summary.jobs.filter(\.hasFailures).prefix(maxJobs).map(\.job)
        // Best effort: if failures can't be counted, the summary leaves them out.
        let failures = failed.isEmpty || !countsFailures ? nil : try? await FailureCounts(of: Array(failed), in: store)
        var listed: Set<JobID> = []
        for job in failed where countsFailures {
            // Best effort: if this query fails, the command that tries the items again lacks its flag.
            if (try? await store.control.hasListedFailures(job: job)) == true { listed.insert(job) }
        }
        return RunReport(summary: summary, elapsed: elapsed, failures: failures, listed: listed)
    }
}

/// The last output of a run: one line or one JSON object, and the exit code.
struct RunSummary: Encodable {
    let end: String
    let done, cached, failed, blacklisted, retried: Int
    let bytes: Int64
    let bytesSaved: Int64
    let elapsedSeconds: Double
    let jobs: [JobProgress]
    private let failures: FailureCounts?
    private let listed: Set<JobID>
    private let exitCode: ExitCode

    enum CodingKeys: String, CodingKey {
        case end, done, cached, failed, blacklisted, retried, bytes, jobs
        case bytesSaved = "bytes_saved"
        case elapsedSeconds = "elapsed_seconds"
    }

    init(_ report: RunReport, drained: Bool) {
        let summary = report.summary
        elapsedSeconds = (report.elapsed * 1_000).rounded() / 1_000
        failures = report.failures
        listed = report.listed
        let counts = summary.counts
        end =
            switch summary.end {
            case .drained: "drained"
            case .stopped: "stopped"
            case .disk: "disk"
            }
        done = counts.done
        cached = counts.cached
        failed = counts.failed
        blacklisted = counts.blacklisted
        retried = counts.retried
        bytes = counts.bytes
        bytesSaved = summary.bytesSaved
        jobs = summary.jobs
        exitCode = Self.code(summary, drained: drained)
    }

    func report(json: Bool, isQuiet: Bool) throws {
        if json {
            Terminal.print(try Output.json(self))
        } else {
            var parts = ["\(done) done", "\(cached) cached", "\(failed) failed"]
            if blacklisted > 0 { parts.append("\(blacklisted) blacklisted") }
            parts.append("\(Output.bytes(bytes)) downloaded")
            if bytesSaved > 0 { parts.append("\(Output.bytes(bytesSaved)) rejected early") }
            Terminal.print(parts.joined(separator: ", "))
            for job in jobs {
                if let error = job.error { Terminal.error("job \(job.job): \(error)") }
            }
            if exitCode == .temporary, end == "stopped" {
                Terminal.error("Stopped before all was done; the remaining items are in the queue. Run again to go on.")
            }
            if !isQuiet { details.forEach(Terminal.error) }
            if failed + blacklisted > 0 {
                let ids = jobs.filter(\.hasFailures).map { String($0.job) }.joined(separator: ", ")
                Terminal.error("See why with: worker results \(ids.isEmpty ? "JOB" : ids)")
            }
        }
        if exitCode != .success { throw exitCode }
    }

    /// The time and the rates, the failures by class and host, and the command that tries them again.
    private var details: [String] {
        var lines: [String] = []
        let ended = done + cached + failed + blacklisted
        if ended > 0, elapsedSeconds > 0 {
            let time =
                elapsedSeconds < 60 ? "\(Output.fixed(elapsedSeconds, 1)) s" : Output.duration(seconds: elapsedSeconds)
            let bytes = Output.bytes(perSecond: Double(self.bytes) / elapsedSeconds)
            lines.append("in \(time): \(Output.fixed(Double(ended) / elapsedSeconds, 1)) a second, \(bytes)")
        }
        if let failures, !failures.counts.isEmpty {
            let colours = Colours.ofError
            lines.append(colours.red("failures of \(jobs.count == 1 ? "the job" : "the jobs"): \(failures.byClass)"))
            // If a setting of the job or the worker refused a URL, its host is not at fault.
            let ofHosts = failures.ofHosts
            if !ofHosts.counts.isEmpty { lines.append("worst hosts: \(ofHosts.byHost)") }
            let ids = jobs.filter(\.hasFailures).prefix(3)
            let more = ids.count < jobs.filter(\.hasFailures).count ? ", and so on" : ""
            lines.append("Try again with: " + ids.map { retryCommand(of: $0.job) }.joined(separator: "; ") + more)
        }
        return lines
    }

    /// With the flag that takes URLs off the blacklist if some are on it: otherwise they end without a request.
    private func retryCommand(of job: JobID) -> String {
        "worker retry \(job)\(listed.contains(job) ? " --retry-failed" : "")"
    }

    private static func code(_ summary: Worker.Summary, drained: Bool) -> ExitCode {
        if case .disk = summary.end { return .temporary }
        guard drained else { return .success }
        // Exit code 0 means that everything is done, so a stopped run with a backlog gets another.
        if case .stopped = summary.end, !summary.backlog.isEmpty { return .temporary }
        let counts = summary.counts
        let failures = counts.failed + counts.blacklisted
        if counts.unreachable > 0, counts.unreachable == counts.ended { return .unavailable }
        return failures > 0 || summary.jobs.contains { $0.state == .failed || $0.failed > 0 } ? .someFailed : .success
    }
}

extension JobProgress {
    /// Whether items have failed, or were not fetched since their URLs are on the blacklist.
    var hasFailures: Bool { failed + blacklisted > 0 }
}
