import Download
import FoundationEssentials
import Lists

/// A URL on the command line.
enum URLArgument {
    /// A word of the command line may also be the name of a file.
    static func verdict(_ text: String) -> URLCheck.Verdict {
        let verdict = URLCheck.verdict(text)
        guard case .bad = verdict else {
            // The downloader may reject a URL that the check accepts.
            if text.contains(",http://") || text.contains(",https://") {
                return .doubtful("'\(Terminal.safe(text))' may be two URLs: write a space between them.")
            }
            guard text.lowercased().hasPrefix("http"), Downloader.host(of: text) == nil else { return verdict }
            return .bad("'\(Terminal.safe(text))' is no URL that can be requested.")
        }
        guard !text.isEmpty, !text.contains("://"), FileManager.default.fileExists(atPath: text) else { return verdict }
        return .bad("'\(text)' is a file here. Did you mean: worker enqueue -f \(text)")
    }
}
