import Core
import Jobs

extension JobStore {
    /// Checks names of variants that are given for a job's results.
    ///
    /// - Throws: `usage` with the nearest name, for a name that none of the job's results has. A job without results has
    ///   no wrong names.
    func check(variants: [String], job: JobID) async throws {
        for name in variants where try await !reports.hasVariant(name, job: job) {
            let known = try await reports.variants(job: job)
            guard !known.isEmpty else { return }
            throw SettingsError(
                "Job \(job) has no picture of the variant '\(Terminal.safe(name))'."
                    + NearestWord.question(name, among: known) + " Its variants are: \(known.joined(separator: ", ")).")
        }
    }
}
