/// One rendition asked for: its name, its box in pixels and how it is encoded.
///
/// In short `thumb=320x240,cover,webp,q80`, or the same as a JSON object:
/// `{"name":"thumb","width":320,"height":240,"fit":"cover","format":"webp","quality":80}`. How a picture is brought to
/// the box is told at ``Fit``; the box is measured in the picture as it is seen, after its orientation is applied.
public struct VariantSpec: Hashable, Sendable {
    /// How a picture meets its box. With one side of the box empty all of them mean the same: proportionate.
    public enum Fit: String, CaseIterable, Codable, Hashable, Sendable {
        /// The largest that fits into the box.
        case inside
        /// The smallest that covers the box.
        case outside
        /// The box exactly, what stands over cut off on both sides. Without `enlarge` a source that is smaller than
        /// the box in an axis keeps its own size there, so the result is the box clipped to the source.
        case cover
        /// The box exactly, the picture inside, the rest transparent, or white where the format has no alpha.
        case contain
        /// The box exactly, stretched. Without `enlarge` only the axes that shrink.
        case fill
    }

    /// A format that is written.
    public enum Output: String, CaseIterable, Codable, Hashable, Sendable {
        case jpeg, png, webp, avif, gif
    }

    public let name: String
    /// 1 to the format's largest side; nil where the aspect decides.
    public let width: Int?
    public let height: Int?
    public let fit: Fit
    /// Whether a picture smaller than the box is scaled up.
    public let enlarge: Bool
    /// Nil keeps the source's format where that is written here; of others, and of a GIF of one frame, PNG where there
    /// is alpha, JPEG where not.
    public let format: Output?
    /// 1 to 100; nil is the format's default: JPEG and WebP 80, AVIF 55. PNG and GIF have none.
    public let quality: Int?

    /// The rendition asked for, without its name: two specs ask for the same one exactly when these are equal.
    ///
    /// Part of the identity a cache files renditions under, so a change here is a change of
    /// ``ImagingRuntime/coderVersion``.
    public var canonical: String {
        var parts = ["\(width.map(String.init) ?? "")x\(height.map(String.init) ?? "")"]
        // With a side empty every fit means the same.
        parts.append((width == nil || height == nil ? Fit.inside : fit).rawValue)
        if enlarge { parts.append("enlarge") }
        parts.append(format?.rawValue ?? "source")
        if let quality = quality ?? format?.defaultQuality { parts.append("q\(quality)") }
        return parts.joined(separator: ",")
    }

    /// - Throws: ``VariantSpecError`` for a name, size or quality that is not allowed.
    public init(
        name: String,
        width: Int? = nil,
        height: Int? = nil,
        fit: Fit = .inside,
        enlarge: Bool = false,
        format: Output? = nil,
        quality: Int? = nil,
    ) throws(VariantSpecError) {
        self.name = name
        self.width = width
        self.height = height
        self.fit = fit
        self.enlarge = enlarge
        self.format = format
        self.quality = quality
        try validate()
    }
}

extension VariantSpec {
    /// The most variants a job may ask for.
    static let mostInAList = 64
    static let longestName = 64
    static let reservedName = "original"

    private func validate() throws(VariantSpecError) {
        try Self.validate(name: name)
        if width == nil, height == nil {
            throw VariantSpecError("variant '\(name)' has neither a width nor a height; give at least one, as in 320x")
        }
        try validate(side: "width", width)
        try validate(side: "height", height)
        guard let quality else { return }
        if let format, format.defaultQuality == nil {
            throw VariantSpecError(
                "variant '\(name)' has a quality, and \(format.rawValue) has none; leave out 'q\(quality)'")
        }
        guard (1...100).contains(quality) else {
            throw VariantSpecError("variant '\(name)' has quality \(quality); it must be between 1 and 100")
        }
    }

    private func validate(side: String, _ value: Int?) throws(VariantSpecError) {
        let largest = format?.largestSide ?? 65_535
        guard let value, !(1...largest).contains(value) else { return }
        let what = format.map { " for \($0.rawValue)" } ?? ""
        throw VariantSpecError("variant '\(name)' has \(side) \(value); it must be between 1 and \(largest)\(what)")
    }

    static func validate(name: String) throws(VariantSpecError) {
        guard !name.isEmpty else { throw VariantSpecError("a variant has an empty name; write it as NAME=320x240") }
        let isPlain = name.utf8.allSatisfy { isLetterOrDigit($0) || "._-".utf8.contains($0) }
        guard isPlain, name.utf8.first.map(isLetterOrDigit) == true, name.utf8.count <= longestName else {
            throw VariantSpecError(
                "'\(VariantSpecError.quoted(name))' is no name for a variant: it must begin with an ASCII letter or "
                    + "digit, and have at most \(longestName) of letters, digits, '.', '_' and '-'")
        }
        guard name != reservedName else {
            throw VariantSpecError("'original' names the source itself and cannot be a variant; choose another name")
        }
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: false
        }
    }
}

extension VariantSpec.Output {
    /// SDWebImage encodes at the greatest quality; these are the usual ones for the web.
    var defaultQuality: Int? {
        switch self {
        case .jpeg, .webp: 80
        case .avif: 55
        case .png, .gif: nil
        }
    }

    /// libjpeg's `JPEG_MAX_DIMENSION`, libwebp's `WEBP_MAX_DIMENSION`, libvips' limit for HEIF.
    var largestSide: Int {
        switch self {
        case .jpeg: 65_500
        case .webp: 16_383
        case .avif: 16_384
        case .png, .gif: 65_535
        }
    }

    var hasAlpha: Bool { self != .jpeg }

    /// Whether an animated source stays animated.
    var isAnimated: Bool { self == .webp || self == .gif }

    var imageFormat: ImageFormat {
        switch self {
        case .jpeg: .jpeg
        case .png: .png
        case .webp: .webp
        case .avif: .avif
        case .gif: .gif
        }
    }
}

/// What is wrong with a variant's text, where, and what would be right.
public struct VariantSpecError: Error, Hashable, Sendable, CustomStringConvertible {
    public let description: String

    init(_ description: String) {
        self.description = ImagingError.tidied(description)
    }

    /// A user's text, short enough to be part of a sentence.
    static func quoted(_ text: String) -> String {
        text.count > 80 ? String(text.prefix(79)) + "…" : text
    }
}
