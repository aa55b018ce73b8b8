import FoundationEssentials
import ImageFiles
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
