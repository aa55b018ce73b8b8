package import Core
internal import FoundationEssentials
package import ImageFiles
package import Variants

/// The worker's request to a helper. The descriptors are the source, then one empty file for each variant, then one for
/// each asset.
package struct HelperRequest: Codable, Sendable {
    package let limits: ImageLimits
    package let variants: [VariantSpec]
    /// The names of the other pictures that effects use.
    package let assets: [String]
    /// Requests a preview of this many first bytes, written to one file; then there are no variants.
    package var preview: Int?
    /// Maximum size of each file; nil for the helper's own limit.
    package var fileBytes: Int64?
    /// The damage to accept in the source.
    package var tolerance = DecodeTolerance()
    /// CPU seconds for this image.
    package let seconds: Int
    /// Requests only the facts of each descriptor; then all of them are sources.
    package var factsOnly: Bool?

    package init(limits: ImageLimits, variants: [VariantSpec], assets: [String], preview: Int? = nil, seconds: Int) {
        self.limits = limits
        self.variants = variants
        self.assets = assets
        self.preview = preview
        self.seconds = seconds
    }
}

/// The helper's reply.
package enum HelperReply: Codable, Sendable {
    case made(TransformReport)
    case preview(PreviewReport?)
    case facts([FactsReply])
    /// Only classes that concern the picture or the request are accepted, so that a helper that an attacker has taken
    /// over cannot pause the worker by its reply.
    case failed(Failure)
    /// A file would have exceeded its limit.
    case outgrown

    package init(json bytes: [UInt8]) throws {
        self = try JSONDecoder().decode(HelperReply.self, from: Data(bytes))
        if case .failed(let failure) = self, !Self.classes.contains(failure.failureClass) {
            throw Failure(.transform, "The helper answered with the class \(failure.failureClass).")
        }
    }

    private static let classes: Set<FailureClass> = [
        .notAnImage, .badImage, .truncated, .tooManyPixels, .transform, .delegate, .encode,
    ]
}

/// A helper's reply for one source of a group.
package enum FactsReply: Codable, Sendable {
    case facts(ImageFacts)
    /// The source is no image, or damaged, large or animated: the worker sends it again, in a request of its own.
    case undecided
}
