internal import Core

/// A requested rendition: its name, its box in pixels, its effects and its encoding.
///
/// In short `thumb=320x240,cover,north,webp,q80,sharpen`, or the same as a JSON object:
/// `{"name":"thumb","width":320,"height":240,"fit":"cover","position":"north","format":"webp","quality":80,
/// "ops":["sharpen"]}`. ``Fit`` says how a picture is brought to the box. The box applies to the upright picture, after
/// its EXIF orientation was applied.
///
/// Effects are applied in the order in which they are written. The box comes first, except that crops and trims at the
/// head of the list come before it and are measured in the source's own pixels. The word `resize` among the effects
/// moves the box to that place.
///
/// Densities, `@1+@2+@3`, make a spec for each: `thumb`, `thumb@2x` and `thumb@3x`.
///
/// A new spec drops the parts that change nothing: a fit if a side is empty, the format's default quality, an effect
/// that changes no picture. So `320x,cover,webp,q80` reads back as `320x,webp`.
public struct VariantSpec: Hashable, Sendable {
    /// How a picture is brought to its box. If one side of the box is empty, all fits have the same result:
    /// proportionate.
    public enum Fit: String, CaseIterable, Codable, Hashable, Sendable {
        /// The largest picture that fits into the box.
        case inside
        /// The smallest picture that covers the box.
        case outside
        /// Exactly the box; what exceeds it is cropped, and ``VariantSpec/position`` decides which part stays.
        /// Without `enlarge`, a source that is smaller than the box in an axis keeps its size in that axis.
        case cover
        /// Exactly the box, with the whole picture inside; the rest is transparent, or has the colour of the option
        /// `background` (white by default) if the format has no alpha.
        case contain
        /// Exactly the box, stretched. Without `enlarge` only axes that shrink are changed.
        case fill
    }

    /// A format that the worker can write.
    public enum Output: String, CaseIterable, Codable, Hashable, Sendable {
        case jpeg, png, webp, avif, jxl, gif, tiff, heic
    }

    public let name: String
    /// 1 to the format's largest side; nil if the aspect ratio decides.
    public package(set) var width: Int?
    public package(set) var height: Int?
    public package(set) var fit = Fit.inside
    /// Whether a picture smaller than the box is scaled up.
    public package(set) var enlarge = false
    /// Nil keeps the source's format. But TIFF, HEIC, BMP, QOI and a GIF of one frame become PNG if there is alpha, and
    /// JPEG if not.
    public package(set) var format: Output?
    /// 1 to 100; nil is the format's default: JPEG and WebP 80, AVIF and HEIC 55, JPEG XL 75. PNG, GIF and TIFF have none.
    public package(set) var quality: Int?
    /// The part that `cover` keeps, and the place where `contain` puts the picture.
    public package(set) var position = Position.centre
    public package(set) var effects: [Effect] = []
    package var options = VariantOptions()

    /// The requested rendition without its name: two specs request the same rendition exactly if these are equal.
    ///
    /// It is part of the identity under which the cache files renditions, so a change here needs a new
    /// `ImagingRuntime.coderVersion`.
    public var canonical: String {
        var parts = ["\(width.map(String.init) ?? "")x\(height.map(String.init) ?? "")"]
        parts.append(fit.rawValue)
        if enlarge { parts.append("enlarge") }
        if position != .centre { parts.append("at=" + position.canonical) }
        parts.append(format?.rawValue ?? "source")
        if let quality { parts.append("q\(quality)") }
        parts += options.canonical
        parts += effectsInOrder.map(\.canonical)
        return parts.joined(separator: ",")
    }

    /// The same spec with these options added if it doesn't set them itself. They are a job's options for all its
    /// variants.
    public func with(_ defaults: Set<VariantOption>) throws(VariantSpecError) -> VariantSpec {
        var spec = self
        for option in defaults where options.given[option] == nil {
            if let alone = option.alone { spec.options.set(option, alone) }
        }
        return try spec.checked()
    }

    /// The registered coder that writes it; nil for a built-in format.
    public var coderName: String? {
        if case .text(let name)? = options.given[.coder] { name } else { nil }
    }

    /// The other pictures that its effects use, each once.
    public var assetNames: Set<String> {
        Set(effects.filter { $0.kind == .watermark }.map { $0.word("image") })
    }

    /// The effects, with the resize at its place.
    package var effectsInOrder: [Effect] {
        if effects.contains(where: { $0.kind == .resize }) { return effects }
        let head = effects.prefix { $0.kind.comesBeforeResize }
        return head + [.resize] + effects.dropFirst(head.count)
    }

    /// Positions, effects and options are in the short form, see ``parse(_:)``.
    ///
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
        var spec = VariantSpec(unchecked: name)
        (spec.width, spec.height, spec.fit, spec.enlarge) = (width, height, fit, enlarge)
        (spec.format, spec.quality) = (format, quality)
        self = try spec.checked()
    }

    /// An unchecked spec: the caller sets its parts one by one, then ``checked()`` validates it.
    package init(unchecked name: String) { self.name = name }

    /// The same spec in its normal form.
    ///
    /// - Throws: ``VariantSpecError`` if its parts contradict each other.
    package func checked() throws(VariantSpecError) -> VariantSpec {
        var spec = self
        try spec.validate()
        spec.normalise()
        try spec.validateIsSomething()
        return spec
    }
}

extension VariantSpec {
    /// Maximum number of variants of a job.
    static let maxVariants = 64
    static let longestName = 64
    static let reservedName = "original"

    /// Maximum number of effects, more than real pipelines have. Without it one job could keep a helper busy for ever.
    static let maxEffects = 32

    private func validate() throws(VariantSpecError) {
        try Self.validate(name: name)
        try validate(side: "width", width)
        try validate(side: "height", height)
        try validateQuality()
        try validateOptions()
        try validateEffects()
    }

    /// Refuses a spec without any part: it is more likely a mistake than a request for a copy.
    private func validateIsSomething() throws(VariantSpecError) {
        if width == nil, height == nil, format == nil, quality == nil, effects.isEmpty, options.values.isEmpty {
            throw VariantSpecError("variant '\(name)' has neither a width nor a height; give at least one, as in 320x")
        }
    }

    private func validateQuality() throws(VariantSpecError) {
        guard let quality else { return }
        if let format, format.defaultQuality == nil {
            throw VariantSpecError(
                "variant '\(name)' has a quality, and \(format.rawValue) has none; leave out 'q\(quality)'")
        }
        guard (1...100).contains(quality) else {
            throw VariantSpecError("variant '\(name)' has quality \(quality); it must be between 1 and 100")
        }
    }

    private func validateOptions() throws(VariantSpecError) {
        if let coderName, let other = format?.rawValue ?? options.candidates.map({ _ in "auto" }) {
            throw VariantSpecError("variant '\(name)' has 'coder:\(coderName)' and '\(other)'; leave one of them out")
        }
        for option in options.values.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
            guard let who = encoderIgnoring(option) else { continue }
            throw VariantSpecError(
                "variant '\(name)' has '\(option.rawValue)', which means nothing for \(who); leave it out")
        }
        if let format, options.candidates != nil {
            throw VariantSpecError("variant '\(name)' has 'auto' and '\(format.rawValue)'; leave one of them out")
        }
        if let effort = options.whole(.effort), let efforts = format?.efforts, !efforts.contains(effort) {
            throw VariantSpecError(
                "variant '\(name)' has effort \(effort); for \(format?.rawValue ?? "") it must be between "
                    + "\(efforts.lowerBound) and \(efforts.upperBound)")
        }
    }

    /// The encoder that would ignore the option; nil if none does, or if the encoder is not known.
    private func encoderIgnoring(_ option: VariantOption) -> String? {
        if let coderName { return option.appliesToCoders ? nil : "the coder '\(coderName)'" }
        guard let formats = format.map({ [$0] }) ?? options.candidates else { return nil }
        guard !formats.contains(where: option.applies) else { return nil }
        return formats.map(\.rawValue).joined(separator: ", ")
    }

    private func validateEffects() throws(VariantSpecError) {
        guard effects.count <= Self.maxEffects else {
            throw VariantSpecError("variant '\(name)' has \(effects.count) effects; \(Self.maxEffects) is the maximum")
        }
        guard effects.count(where: { $0.kind == .resize }) <= 1 else {
            throw VariantSpecError("variant '\(name)' has 'resize' twice; there is one box, so leave one of them out")
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
        let isPlain = name.utf8.allSatisfy { isLetterOrDigit($0) || "._-@".utf8.contains($0) }
        guard isPlain, name.utf8.first.map(isLetterOrDigit) == true, name.utf8.count <= longestName else {
            throw VariantSpecError(
                "'\(VariantSpecError.quoted(name))' is no name for a variant: it must begin with an ASCII letter or "
                    + "digit, and have at most \(longestName) of letters, digits, '.', '_', '-' and '@'")
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

/// A mistake in a variant's text: where it is, and what would be right.
public struct VariantSpecError: Error, Hashable, Sendable, CustomStringConvertible {
    public let description: String

    init(_ description: String) {
        self.description = MessageText.tidied(description)
    }

    /// A user's text, shortened to fit into a sentence.
    static func quoted(_ text: String) -> String {
        text.count > 80 ? String(text.prefix(79)) + "…" : text
    }
}
