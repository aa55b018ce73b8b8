/// What a job asks for beyond its URLs and variants, by SDWebImage's names in kebab case.
public struct JobOptions: OptionSet, Hashable, Sendable {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Ask for the URL although it is on the blacklist; a success takes it off.
    public static let retryFailed = JobOptions(rawValue: 1 << 0)
    /// Ask the origin whether what is cached is still current.
    public static let refreshCached = JobOptions(rawValue: 1 << 1)
    /// Never use the network; what isn't cached ends as `not-cached`.
    public static let fromCacheOnly = JobOptions(rawValue: 1 << 2)
    /// Never use what is cached.
    public static let fromLoaderOnly = JobOptions(rawValue: 1 << 3)
    /// Priority −50, unless one is given.
    public static let lowPriority = JobOptions(rawValue: 1 << 4)
    /// Priority +50, unless one is given.
    public static let highPriority = JobOptions(rawValue: 1 << 5)
    /// Accept any TLS certificate.
    public static let allowInvalidCertificates = JobOptions(rawValue: 1 << 6)
    /// Keep the source's bytes; the default.
    public static let keepOriginal = JobOptions(rawValue: 1 << 7)
    /// Keep the variants only.
    public static let discardOriginal = JobOptions(rawValue: 1 << 8)
    /// Use the first frame of an animation.
    public static let decodeFirstFrameOnly = JobOptions(rawValue: 1 << 9)

    /// Apply effects to every frame of an animation, which else is only brought to its size.
    public static let transformAnimatedImage = JobOptions(rawValue: 1 << 10)
    /// Take a source of more than 60 MiB of pixels for a smaller one.
    public static let scaleDownLargeImages = JobOptions(rawValue: 1 << 11)

    /// Show pictures while they arrive.
    public static let progressive = JobOptions(rawValue: 1 << 12)

    /// Take a source that is only kept for whole, without decoding it.
    public static let avoidDecodeImage = JobOptions(rawValue: 1 << 13)

    /// Send and keep cookies, for this job alone.
    public static let handleCookies = JobOptions(rawValue: 1 << 20)
    /// Don't take what `X-Robots-Tag` keeps from machines.
    public static let respectRobotsTag = JobOptions(rawValue: 1 << 21)
    /// Ask robots.txt first.
    public static let respectRobotsText = JobOptions(rawValue: 1 << 22)
    /// Use what is cached for as long as HTTP says (RFC 9111), and no longer.
    public static let httpCache = JobOptions(rawValue: 1 << 23)
    /// Use what is cached, however old, when the origin fails.
    public static let staleIfError = JobOptions(rawValue: 1 << 24)

    /// Take what a browser would show of a damaged picture.
    public static let acceptDamaged = JobOptions(rawValue: 1 << 25)

    /// The names people write.
    public static let names: [(name: String, option: JobOptions)] = [
        ("retry-failed", .retryFailed), ("refresh-cached", .refreshCached), ("from-cache-only", .fromCacheOnly),
        ("from-loader-only", .fromLoaderOnly), ("low-priority", .lowPriority), ("high-priority", .highPriority),
        ("allow-invalid-ssl-certificates", .allowInvalidCertificates), ("keep-original", .keepOriginal),
        ("discard-original", .discardOriginal), ("decode-first-frame-only", .decodeFirstFrameOnly),
        ("transform-animated-image", .transformAnimatedImage), ("scale-down-large-images", .scaleDownLargeImages),
        ("progressive", .progressive), ("avoid-decode-image", .avoidDecodeImage), ("handle-cookies", .handleCookies),
        ("respect-robots-tag", .respectRobotsTag), ("respect-robots-txt", .respectRobotsText),
        ("http-cache", .httpCache), ("stale-if-error", .staleIfError), ("accept-damaged", .acceptDamaged),
    ]

    /// Reads `jobs.options`: names separated by commas or white space.
    ///
    /// An unknown name is an error and not ignored, since the job would quietly do something else than was asked for.
    public init(parsing text: String?) throws(JobsError) {
        var options: JobOptions = []
        for word in (text ?? "").split(whereSeparator: { $0 == "," || $0.isWhitespace }) {
            // A setting with a value is none of these words, but must be a right one.
            if word.contains("=") {
                _ = try JobSettings(parsing: String(word))
                continue
            }
            guard let match = Self.names.first(where: { $0.name == word }) else {
                let known = Self.names.map(\.name).joined(separator: ", ")
                throw JobsError(
                    .refused,
                    "Unknown option '\(word.prefix(64))'. The options are: \(known), \(JobSettings.names).")
            }
            options.insert(match.option)
        }
        if options.contains([.keepOriginal, .discardOriginal]) {
            throw JobsError(.refused, "The options keep-original and discard-original exclude each other.")
        }
        if options.contains([.fromCacheOnly, .fromLoaderOnly]) {
            throw JobsError(.refused, "The options from-cache-only and from-loader-only exclude each other.")
        }
        self = options
    }
}
