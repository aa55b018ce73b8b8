/// The job options that have a value: `max-age=1h`, `cache-key=drop-query`.
public struct JobSettings: Hashable, Sendable {
    /// How long a cached source is used without asking the origin, in milliseconds; negative for ever.
    public var maxAge: Int64?
    /// What a URL is looked up by, if not by itself. The first that changes something does.
    public var cacheKey: CacheKeyRule?

    static let names = "max-age=TIME, cache-key=drop-query, cache-key=keep:NAME+NAME, cache-key=s/PATTERN/REPLACEMENT/"

    public init(parsing text: String?) throws(JobsError) {
        for word in (text ?? "").split(whereSeparator: { $0 == "," || $0.isWhitespace }) {
            guard let equals = word.firstIndex(of: "=") else { continue }
            let value = String(word[word.index(after: equals)...])
            switch word[..<equals] {
            case "max-age": maxAge = try Self.time(value)
            case "cache-key": cacheKey = try CacheKeyRule(value)
            default:
                throw JobsError(
                    .refused, "Unknown option '\(word.prefix(64))'. The options with a value are: \(Self.names).")
            }
        }
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
