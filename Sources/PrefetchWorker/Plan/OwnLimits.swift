internal import Core
internal import Imaging
internal import Jobs

/// The numbers that stages go by.
struct StageSettings: Sendable {
    var retries = RetryPolicy()
    /// How long a cached source is used without asking the origin, in milliseconds; negative for ever.
    var maxAge: Int64 = 7 * 86_400_000
    var limits = OwnLimits()
    var now: @Sendable () -> WallTime
}

/// The settings by which this worker refuses what another may take. A URL that one of them has refused is listed as long as
/// it stays as it is.
struct OwnLimits: Sendable, Hashable {
    var addresses = ""
    var maxBodyBytes: Int64 = 0
    var maxCacheBytes: Int64?
    var images = ImageLimits()

    /// The settings that a class of failures goes by, as they are.
    func setting(of failure: FailureClass) -> String? {
        switch failure {
        case .forbiddenAddress: "allow-addresses=\(addresses)"
        case .tooLarge: "max-body=\(maxBodyBytes) cache-max-size=\(maxCacheBytes.map(String.init) ?? "none")"
        case .tooManyPixels:
            "max-pixels=\(images.pixels) max-frames=\(images.frames) max-animation-pixels=\(images.animationPixels) "
                + "max-decoder-memory=\(images.decoderBytes)"
        default: nil
        }
    }

    /// Whether an entry of the blacklist still holds.
    func keeps(_ entry: BlacklistEntry) -> Bool { entry.setting == nil || entry.setting == setting(of: entry.failure) }

    /// What to change to have it, in a sentence; nil for what no setting of the worker's decides.
    func advice(on failure: FailureClass) -> String? {
        switch failure {
        case .forbiddenAddress: "Allow it with --allow-addresses."
        case .tooLarge:
            maxCacheBytes == nil ? "Raise it with --max-body." : "Raise it with --max-body or --cache-max-size."
        case .tooManyPixels: "Raise it with --max-pixels, --max-frames, --max-animation-pixels or --max-decoder-memory."
        default: nil
        }
    }

    /// A failure with the setting that has refused it, and what to change.
    func explained(_ failure: Failure) -> Failure {
        guard let advice = advice(on: failure.failureClass) else { return failure }
        let isNamed = failure.message.contains("--")
        var explained = Failure(failure.failureClass, isNamed ? failure.message : "\(failure.message) \(advice)")
        explained.host = failure.host
        explained.hasAsked = failure.hasAsked
        explained.isListed = failure.isListed
        explained.setting = setting(of: failure.failureClass)
        return explained
    }
}
