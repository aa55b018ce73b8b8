import ArgumentParser
import Jobs
import PrefetchWorker

/// The last output of a run: one line or one JSON object, and the exit code.
struct RunSummary: Encodable {
    let end: String
    let done, cached, failed, blacklisted, retried: Int
    let bytes: Int64
    let bytesSaved: Int64
    let jobs: [JobProgress]
    private let exitCode: ExitCode

    enum CodingKeys: String, CodingKey {
        case end, done, cached, failed, blacklisted, retried, bytes, jobs
        case bytesSaved = "bytes_saved"
    }

    init(_ summary: Worker.Summary, drained: Bool) {
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

    func report(json: Bool) throws {
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
            if failed > 0 {
                let ids = jobs.filter { $0.failed > 0 }.map { String($0.job) }.joined(separator: ", ")
                Terminal.error("See why with: worker results \(ids.isEmpty ? "JOB" : ids)")
            }
        }
        if exitCode != .success { throw exitCode }
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
