internal import Imaging
internal import Jobs

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
        case .tooLarge: maxCacheBytes == nil ? "Raise it with --max-body." : "Raise it with --max-body or --cache-max-size."
        case .tooManyPixels: "Raise it with --max-pixels, --max-frames, --max-animation-pixels or --max-decoder-memory."
        default: nil
        }
    }

    /// The record of a failure, with what has refused it.
    func explained(_ record: FailureRecord) -> FailureRecord {
        guard let advice = advice(on: record.failure) else { return record }
        let isNamed = record.message.contains("--")
        var explained = FailureRecord(record.failure, isNamed ? record.message : "\(record.message) \(advice)")
        explained.host = record.host
        explained.hasAsked = record.hasAsked
        explained.isListed = record.isListed
        explained.setting = setting(of: record.failure)
        return explained
    }
}
