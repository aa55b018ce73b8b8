import Core
import FoundationEssentials
import ImageFiles
import Jobs
import Variants

/// The variants of several flags, in either form, joined to one text for a job.
struct VariantList {
    let text: String

    /// - Throws: the mistake in the first variant that cannot be parsed.
    init(_ flags: [String]) throws {
        let isJSON = flags.contains { Self.first(of: $0).map { "{[".contains($0) } ?? false }
        guard isJSON, flags.count > 1 else {
            text = flags.joined(separator: "\n")
            return
        }
        var specs: [VariantSpec] = []
        do {
            for flag in flags { specs += try VariantSpec.parseList(flag) }
        } catch {
            throw SettingsError("\(error)")
        }
        text = String(decoding: try JSONEncoder().encode(specs), as: UTF8.self)
    }

    private static func first(of text: String) -> Character? { text.first { !$0.isWhitespace } }
}

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
