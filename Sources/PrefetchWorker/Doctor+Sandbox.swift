internal import FoundationEssentials
internal import HelperProtocol
internal import Subprocess
internal import SystemPackage

extension Doctor {
    /// Starts a helper that tries every action that its sandbox must refuse.
    func examineSandbox() async -> Finding {
        let report: SandboxReport
        do {
            let result = try await Subprocess.run(
                .path(FilePath(helpers.executable)), arguments: Arguments(helpers.arguments + ["--test-sandbox"]),
                output: .bytes(limit: 1 << 20), error: .discarded)
            report = try JSONDecoder().decode(SandboxReport.self, from: Data(result.standardOutput))
        } catch is DecodingError {
            return Finding(
                part: "sandbox", verdict: .warning, detail: "it could not be tried: the helper gave no report")
        } catch {
            return Finding(part: "sandbox", verdict: .warning, detail: "it could not be tried: \(error)")
        }
        return finding(of: report)
    }

    private func finding(of report: SandboxReport) -> Finding {
        let guards = report.protections
        let landlock = guards.landlock > 0 ? "Landlock ABI \(guards.landlock)" : "no Landlock"
        let detail = "\(landlock), \(guards.seccomp ? "seccomp" : "no seccomp")"
        guard report.leaks.isEmpty else {
            let actions = report.leaks.map { "\($0.action) (\($0.layer.rawValue))" }.joined(separator: ", ")
            return Finding(part: "sandbox", verdict: .failure, detail: "\(detail); a helper can still: \(actions)")
        }
        guard guards.isComplete else {
            let reasons = guards.complaints.joined(separator: " ")
            return Finding(part: "sandbox", verdict: .warning, detail: "\(detail). \(reasons)")
        }
        return Finding(
            part: "sandbox", verdict: .ok,
            detail: "\(detail); a helper was refused all of \(report.trials.count) forbidden actions")
    }
}
