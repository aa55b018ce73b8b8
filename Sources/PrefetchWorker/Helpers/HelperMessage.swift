internal import Imaging

/// What the worker asks of a helper. The source and then one empty file for each variant come as descriptors.
struct HelperRequest: Codable, Sendable {
    let limits: ImageLimits
    let variants: [VariantSpec]
    /// CPU seconds this image may use.
    let seconds: Int
}

/// What the helper answers.
enum HelperReply: Codable, Sendable {
    case made(TransformReport)
    case failed(ImagingError)
}
