internal import Core

/// A job's options without values, by SDWebImage's names in kebab case.
public struct JobOptions: OptionSet, Hashable, Sendable {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Request the URL although it is on the blacklist; a success removes it from the list.
    public static let retryFailed = JobOptions(rawValue: 1 << 0)
    /// Revalidate cached sources with their origins.
    public static let refreshCached = JobOptions(rawValue: 1 << 1)
    /// Never use the network; an item that isn't cached ends as `not-cached`.
    public static let fromCacheOnly = JobOptions(rawValue: 1 << 2)
    /// Never use the cache.
    public static let fromLoaderOnly = JobOptions(rawValue: 1 << 3)
    /// Priority −50, unless the job has its own.
    public static let lowPriority = JobOptions(rawValue: 1 << 4)
    /// Priority +50, unless the job has its own.
    public static let highPriority = JobOptions(rawValue: 1 << 5)
    /// Accept any TLS certificate.
    public static let allowInvalidCertificates = JobOptions(rawValue: 1 << 6)
    /// Keep the source's bytes; the default.
    public static let keepOriginal = JobOptions(rawValue: 1 << 7)
    /// Keep the variants only.
    public static let discardOriginal = JobOptions(rawValue: 1 << 8)
    /// Use the first frame of an animation.
    public static let decodeFirstFrameOnly = JobOptions(rawValue: 1 << 9)

    /// Apply effects to every frame of an animation; without this, an animation is only scaled.
    public static let transformAnimatedImage = JobOptions(rawValue: 1 << 10)
    /// Decode a source of more than 60 MiB of pixels at a smaller size.
    public static let scaleDownLargeImages = JobOptions(rawValue: 1 << 11)

    /// Show pictures while they arrive.
    public static let progressive = JobOptions(rawValue: 1 << 12)

    /// Accept a source that is only stored, without decoding it.
    public static let avoidDecodeImage = JobOptions(rawValue: 1 << 13)

    /// Send and keep cookies, only within this job.
    public static let handleCookies = JobOptions(rawValue: 1 << 20)
    /// Refuse sources that `X-Robots-Tag` forbids.
    public static let respectRobotsTag = JobOptions(rawValue: 1 << 21)
    /// Ask robots.txt first.
    public static let respectRobotsText = JobOptions(rawValue: 1 << 22)
    /// Use cached sources as long as they are fresh (RFC 9111), and no longer.
    public static let httpCache = JobOptions(rawValue: 1 << 23)
    /// Use a cached source of any age if the origin fails.
    public static let staleIfError = JobOptions(rawValue: 1 << 24)

    /// Accept a damaged picture as far as a browser would show it.
    public static let acceptDamaged = JobOptions(rawValue: 1 << 25)

    /// Leave out URLs that an earlier job has finished successfully.
    public static let onlyNew = JobOptions(rawValue: 1 << 30)

    /// The priority that these options give to a job without one of its own; nil if they give none.
    public var priority: Int? { contains(.highPriority) ? 50 : contains(.lowPriority) ? -50 : nil }

    /// The options' names, as users write them.
    public static let names: [(name: String, option: JobOptions)] = [
        ("retry-failed", .retryFailed), ("refresh-cached", .refreshCached), ("from-cache-only", .fromCacheOnly),
        ("from-loader-only", .fromLoaderOnly), ("low-priority", .lowPriority), ("high-priority", .highPriority),
        ("allow-invalid-ssl-certificates", .allowInvalidCertificates), ("keep-original", .keepOriginal),
        ("discard-original", .discardOriginal), ("decode-first-frame-only", .decodeFirstFrameOnly),
        ("transform-animated-image", .transformAnimatedImage), ("scale-down-large-images", .scaleDownLargeImages),
        ("progressive", .progressive), ("avoid-decode-image", .avoidDecodeImage), ("handle-cookies", .handleCookies),
        ("respect-robots-tag", .respectRobotsTag), ("respect-robots-txt", .respectRobotsText),
        ("http-cache", .httpCache), ("stale-if-error", .staleIfError), ("accept-damaged", .acceptDamaged),
        ("only-new", .onlyNew),
    ]

    /// Reads `jobs.options`: names separated by commas or white space.
    ///
    /// An unknown name is an error, since otherwise the job would do something else than requested.
    public init(parsing text: String?) throws(JobsError) {
        var options: JobOptions = []
        var hasRecheck = false
        for word in (text ?? "").split(whereSeparator: { $0 == "," || $0.isWhitespace }) {
            // A setting with a value is no option, but it is checked here as well.
            if word.contains("=") {
                _ = try JobSettings(parsing: String(word))
                hasRecheck = hasRecheck || word.hasPrefix("recheck=")
                continue
            }
            guard let match = Self.names.first(where: { $0.name == word }) else {
                throw JobsError(.refused, "Unknown option '\(word.prefix(64))'.\(Self.advice(for: String(word)))")
            }
            options.insert(match.option)
        }
        if options.contains([.keepOriginal, .discardOriginal]) {
            throw JobsError(.refused, "The options keep-original and discard-original exclude each other.")
        }
        if options.contains([.fromCacheOnly, .fromLoaderOnly]) {
            throw JobsError(.refused, "The options from-cache-only and from-loader-only exclude each other.")
        }
        if hasRecheck, !options.isDisjoint(with: [.refreshCached, .httpCache]) {
            throw JobsError(
                .refused,
                "The option recheck decides by itself when to ask the origin; leave refresh-cached and http-cache out.")
        }
        self = options
    }

    /// The nearest option to an unknown word, or all of them.
    fileprivate static func advice(for word: String) -> String {
        if JobSettings.names.contains(where: { $0.hasPrefix(word + "=") }) {
            let forms = JobSettings.names.filter { $0.hasPrefix(word + "=") }.joined(separator: ", ")
            return " It needs a value: \(forms)."
        }
        let valued = JobSettings.names.map { String($0.prefix { $0 != "=" }) }
        // Names in SQL are often written with underscores.
        if let near = NearestWord.find(word.replacing("_", with: "-"), among: names.map(\.name) + valued) {
            let form = JobSettings.names.first { $0.hasPrefix(near + "=") } ?? near
            return " Did you mean '\(form)'?"
        }
        let known = (names.map(\.name) + JobSettings.names).joined(separator: ", ")
        return " The options are: \(known)."
    }
}

/// The job options that have a value: `max-age=1h`, `cache-key=drop-query`, `content-types=image/jpeg+image/png`.
public struct JobSettings: Hashable, Sendable {
    /// How long a cached source is used without revalidation, in milliseconds; negative for no limit.
    public var maxAge: Int64?
    /// In place of one age for all sources, an interval for each.
    public var recheck: RecheckRule?
    /// How long the job's files stay in the cache after their last use, in milliseconds; negative for ever.
    public var cacheMaxAge: Int64?
    /// The rule that makes the cache key of a URL; nil to use the URL itself.
    public var cacheKey: CacheKeyRule?

    /// The accepted media types of a response, in lower case, with `image/*` for all images; nil for any.
    public var contentTypes: [String]?

    /// Replace the worker's own, in milliseconds.
    public var timeout, connectTimeout, totalTimeout, retryDelay: Int64?
    /// Maximum tries of one item, including the first; replaces the worker's own.
    public var maxTries: Int?

    /// The sizes of the accepted pictures.
    public var filter = PictureFilter()

    static let names =
        [
            "max-age=TIME", RecheckRule.form, "cache-max-age=TIME", "cache-key=drop-query", "cache-key=keep:NAME+NAME",
            "cache-key=s/PATTERN/REPLACEMENT/", "content-types=TYPE+TYPE", "timeout=TIME", "connect-timeout=TIME",
            "total-timeout=TIME", "retry-delay=TIME", "max-tries=N",
        ] + PictureFilter.names

    public init(parsing text: String?) throws(JobsError) {
        for word in (text ?? "").split(whereSeparator: { $0 == "," || $0.isWhitespace }) {
            guard let equals = word.firstIndex(of: "=") else { continue }
            let value = String(word[word.index(after: equals)...])
            switch word[..<equals] {
            case "max-age": maxAge = try Self.age(value, "max-age")
            case "recheck": recheck = try RecheckRule(parsing: value)
            case "cache-max-age": cacheMaxAge = try Self.age(value, "cache-max-age")
            case "timeout": timeout = try Self.time(value, "timeout")
            case "connect-timeout": connectTimeout = try Self.time(value, "connect-timeout")
            case "total-timeout": totalTimeout = try Self.time(value, "total-timeout")
            // One hour is the longest delay of any item.
            case "retry-delay": retryDelay = try Self.time(value, "retry-delay", most: 3_600_000)
            case "max-tries":
                guard let tries = Int(value), (1...1_000).contains(tries) else {
                    throw JobsError(.refused, "max-tries must be a number from 1 to 1000, not '\(value.prefix(64))'.")
                }
                maxTries = tries
            case "cache-key": cacheKey = try CacheKeyRule(value)
            case "content-types": contentTypes = try Self.types(value)
            case let name where try filter.set(name, to: value): break
            default:
                let name = String(word[..<equals])
                guard !JobOptions.names.contains(where: { $0.name == name }) else {
                    throw JobsError(.refused, "The option '\(name)' has no value: write it without '='.")
                }
                throw JobsError(
                    .refused, "Unknown option '\(word.prefix(64))'.\(JobOptions.advice(for: name))")
            }
        }
        if recheck != nil, maxAge != nil {
            throw JobsError(.refused, "The options recheck and max-age exclude each other.")
        }
    }

    private static func types(_ text: String) throws(JobsError) -> [String] {
        let types = text.lowercased().split(separator: "+", omittingEmptySubsequences: false).map(String.init)
        // A type with a plus sign, such as image/svg+xml, can't be listed by itself, since the plus separates types;
        // image/* includes it.
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

    private static let units: [(String, Int64)] = [
        ("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
    ]

    private static func age(_ text: String, _ name: String) throws(JobsError) -> Int64 {
        if text == "-1" || text == "never" { return -1 }
        guard let time = milliseconds(text) else {
            throw JobsError(
                .refused,
                "\(name) must be a time with a unit (ms, s, m, h, d) such as 90s, 12h or 7d, from 0 to 10000000d, or -1 for ever, not '\(text.prefix(64))'."
            )
        }
        return time
    }

    static func time(
        _ text: String, _ name: String, least: Int64 = 1, most: Int64 = 86_400_000,
    ) throws(JobsError) -> Int64 {
        guard let time = milliseconds(text), (least...most).contains(time) else {
            throw JobsError(
                .refused,
                "\(name) must be a time with a unit (ms, s, m, h, d) such as 500ms, 3s or 2m, from \(least)ms to \(most / 3_600_000)h, not '\(text.prefix(64))'."
            )
        }
        return time
    }

    /// 10,000,000 days.
    private static let longest: Int64 = 864_000_000_000_000

    /// - Returns: nil for a text without a unit, which might be meant as days, and above the longest time.
    static func milliseconds(_ text: String) -> Int64? {
        if text == "0" { return 0 }
        guard let unit = units.first(where: { text.hasSuffix($0.0) }),
            let number = Int64(text.dropLast(unit.0.count)), number >= 0
        else { return nil }
        let (time, isTooLong) = number.multipliedReportingOverflow(by: unit.1)
        return isTooLong || time > longest ? nil : time
    }
}
