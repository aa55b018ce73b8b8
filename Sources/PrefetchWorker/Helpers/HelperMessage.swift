internal import Core
internal import FoundationEssentials
internal import Imaging
import Variants

/// The worker's request to a helper. The source, then one empty file for each variant, then one for each asset come as
/// descriptors.
struct HelperRequest: Codable, Sendable {
    let limits: ImageLimits
    let variants: [VariantSpec]
    /// The names of the pictures that effects use.
    let assets: [String]
    /// Asks for a preview of so many first bytes, into one file; there are no variants then.
    var preview: Int?
    /// Bytes that each file may come to; nil for the helper's own limit.
    var fileBytes: Int64?
    /// What may be wrong with the source.
    var tolerance = DecodeTolerance()
    /// CPU seconds this image may use.
    let seconds: Int
    /// Asks what each of the descriptors is, which are all sources then.
    var factsOnly: Bool?

    init(limits: ImageLimits, variants: [VariantSpec], assets: [String], preview: Int? = nil, seconds: Int) {
        self.limits = limits
        self.variants = variants
        self.assets = assets
        self.preview = preview
        self.seconds = seconds
    }
}

/// The helper's reply.
enum HelperReply: Codable, Sendable {
    case made(TransformReport)
    case preview(PreviewReport?)
    case facts([FactsReply])
    /// Of a class that says something of the picture or of what was asked of it: a helper that hostile bytes have taken over
    /// can't pause the worker by an answer.
    case failed(Failure)
    /// A file would have become longer than it may.
    case outgrown

    init(json bytes: [UInt8]) throws {
        self = try JSONDecoder().decode(HelperReply.self, from: Data(bytes))
        if case .failed(let failure) = self, !Self.classes.contains(failure.failureClass) {
            throw Failure(.transform, "The helper answered with the class \(failure.failureClass).")
        }
    }

    private static let classes: Set<FailureClass> = [
        .notAnImage, .badImage, .truncated, .tooManyPixels, .transform, .delegate, .encode,
    ]
}
