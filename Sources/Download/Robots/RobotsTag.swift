/// The `X-Robots-Tag` header: directives between commas, each perhaps for one robot only, as in `somebot: noindex, noai`.
enum RobotsTag {
    private static let refusals: Set<Substring> = ["noai", "noimageai"]

    /// - Parameter agent: our product's name, in lower case.
    static func forbids(_ header: String?, agent: String) -> Bool {
        guard let header else { return false }
        // A name holds for what follows it, up to the next name.
        var isForUs = true
        for part in header.lowercased().split(separator: ",") {
            var directive = part.drop { $0 == " " || $0 == "\t" }
            if let colon = directive.firstIndex(of: ":"), !directive.hasPrefix("max-"),
                !directive.hasPrefix("unavailable_after")
            {
                isForUs = directive[..<colon] == agent[...]
                directive = directive[directive.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            }
            if isForUs, refusals.contains(directive.prefix { $0 != " " && $0 != "\t" }) { return true }
        }
        return false
    }
}
