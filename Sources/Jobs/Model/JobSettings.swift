/// The job options that have a value: `max-age=1h`, `cache-key=drop-query`, `content-types=image/jpeg+image/png`.
public struct JobSettings: Hashable, Sendable {
    /// How long a cached source is used without asking the origin, in milliseconds; negative for ever.
    public var maxAge: Int64?
    /// What a URL is looked up by, if not by itself. The first that changes something does.
    public var cacheKey: CacheKeyRule?

    /// The media types that a response may have, in lower case, `image/*` for all of a kind; nil for any.
    public var contentTypes: [String]?

    static let names =
        "max-age=TIME, cache-key=drop-query, cache-key=keep:NAME+NAME, cache-key=s/PATTERN/REPLACEMENT/, "
        + "content-types=TYPE+TYPE"

    public init(parsing text: String?) throws(JobsError) {
        for word in (text ?? "").split(whereSeparator: { $0 == "," || $0.isWhitespace }) {
            guard let equals = word.firstIndex(of: "=") else { continue }
            let value = String(word[word.index(after: equals)...])
            switch word[..<equals] {
            case "max-age": maxAge = try Self.time(value)
            case "cache-key": cacheKey = try CacheKeyRule(value)
            case "content-types": contentTypes = try Self.types(value)
            default:
                throw JobsError(
                    .refused, "Unknown option '\(word.prefix(64))'. The options with a value are: \(Self.names).")
            }
        }
    }

    private static func types(_ text: String) throws(JobsError) -> [String] {
        let types = text.lowercased().split(separator: "+", omittingEmptySubsequences: false).map(String.init)
        // A plus sign in a type's own name, as in image/svg+xml, is none of ours: such types are reached by image/*.
        guard
            types.allSatisfy({
                $0.split(separator: "/", omittingEmptySubsequences: false).count == 2 && $0.first != "/"
                    && $0.last != "/"
            })
        else {
            throw JobsError(
                .refused,
                "content-types must be media types such as image/jpeg+image/png or image/*, not '\(text.prefix(64))'.")
        }
        return types
    }

    private static func time(_ text: String) throws(JobsError) -> Int64 {
        let units: [(String, Int64)] = [("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)]
        let unit = units.first { text.hasSuffix($0.0) }
        guard let number = Int64(text.dropLast(unit == nil ? 0 : 1)), (-1...10_000_000).contains(number) else {
            throw JobsError(.refused, "max-age must be a time such as 90s, 12h or 7d, or -1 for ever, not '\(text)'.")
        }
        return number < 0 ? -1 : number * (unit?.1 ?? 1_000)
    }
}
