internal import Core
internal import ImageFiles
internal import Jobs

/// The settings of the stages.
final class StageSettings: Sendable {
    let retries: RetryPolicy
    /// The limits that `worker limits` has changed since the worker was started.
    let live = LiveLimits()
    /// How long a cached source is used without revalidation, in milliseconds; negative for ever.
    let maxAge: Int64
    /// How long the worker keeps files in the cache after their last use, in milliseconds; negative for ever.
    let cacheMaxAge: Int64
    let limits: OwnLimits
    let now: @Sendable () -> WallTime

    init(
        retries: RetryPolicy, maxAge: Int64, cacheMaxAge: Int64, limits: OwnLimits,
        now: @escaping @Sendable () -> WallTime,
    ) {
        self.retries = retries
        self.maxAge = maxAge
        self.cacheMaxAge = cacheMaxAge
        self.limits = limits
        self.now = now
    }
}

/// The settings by which this worker refuses URLs that another may accept. A URL that a setting refused stays on the
/// blacklist only while the setting is the same.
struct OwnLimits: Sendable, Hashable {
    var addresses = ""
    var maxRedirects = 0
    var maxBodyBytes: Int64 = 0
    var maxCacheBytes: Int64?
    var images = ImageLimits()

    /// The settings that decide a class of failures, as text.
    func setting(of failure: FailureClass) -> String? {
        switch failure {
        case .forbiddenAddress: "allow-addresses=\(addresses)"
        case .tooManyRedirects: "max-redirects=\(maxRedirects)"
        case .tooLarge: "max-body=\(maxBodyBytes) cache-max-size=\(maxCacheBytes.map(String.init) ?? "none")"
        case .tooManyPixels:
            "max-pixels=\(images.pixels) max-frames=\(images.frames) max-animation-pixels=\(images.animationPixels) "
                + "max-decoder-memory=\(images.decoderBytes)"
        default: nil
        }
    }

    /// Whether an entry of the blacklist still applies.
    func keeps(_ entry: BlacklistEntry) -> Bool { entry.setting == nil || entry.setting == setting(of: entry.failure) }

    /// Which option to change, in a sentence; nil if no setting of the worker decides the class.
    func advice(on failure: FailureClass) -> String? {
        switch failure {
        case .forbiddenAddress: "Allow it with --allow-addresses."
        case .tooManyRedirects: "Allow more with --max-redirects."
        case .tooLarge:
            maxCacheBytes == nil ? "Raise it with --max-body." : "Raise it with --max-body or --cache-max-size."
        case .tooManyPixels: "Raise it with --max-pixels, --max-frames, --max-animation-pixels or --max-decoder-memory."
        default: nil
        }
    }

    /// Adds to a failure the setting that refused it, and the option to change if its message says nothing of options.
    func explained(_ failure: Failure) -> Failure {
        guard let advice = advice(on: failure.failureClass) else { return failure }
        let isNamed = failure.message.contains("--") || failure.message.contains("No option")
        var explained = Failure(failure.failureClass, failure.message + (isNamed ? "" : " \(advice)"))
        explained.host = failure.host
        explained.hasAsked = failure.hasAsked
        explained.isListed = failure.isListed
        explained.setting = setting(of: failure.failureClass)
        return explained
    }
}
