/// Parses the `X-Robots-Tag` header: directives separated by commas, each for one robot if it begins with a name, as in
/// `somebot: noindex, noai`.
enum RobotsTag {
    private static let refusals: Set<Substring> = ["noai", "noimageai"]
    /// Directives with a value; the word before their colon is not a robot's name.
    private static let valued: Set<Substring> = [
        "unavailable_after", "max-snippet", "max-image-preview", "max-video-preview",
    ]

    /// - Parameters:
    ///   - lines: the values of the headers, one a line: a robot's name in one header does not apply to the next.
    ///   - agent: the product's name, in lower case.
    static func forbids(_ lines: String?, agent: String) -> Bool {
        guard let lines else { return false }
        return lines.lowercased().split(separator: "\n").contains { forbids(line: $0, agent) }
    }

    private static func forbids(line: Substring, _ agent: String) -> Bool {
        // A name applies to the directives after it, up to the next name.
        var isForUs = true
        for part in line.split(separator: ",") {
            var directive = part.drop(while: isSpace)
            if let name = robot(directive) {
                isForUs = name == agent[...]
                directive = directive.dropFirst(name.count).drop { isSpace($0) || $0 == ":" }
            }
            if isForUs, refusals.contains(directive.prefix { !isSpace($0) }) { return true }
        }
        return false
    }

    /// The robot's name with which a directive begins. Dates have colons and commas too.
    private static func robot(_ directive: Substring) -> Substring? {
        let name = directive.prefix { !isSpace($0) && $0 != ":" }
        guard directive.dropFirst(name.count).drop(while: isSpace).first == ":", !valued.contains(name),
            name.first?.isLetter == true
        else { return nil }
        return name
    }

    private static func isSpace(_ character: Character) -> Bool { character == " " || character == "\t" }
}
