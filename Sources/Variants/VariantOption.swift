/// How a variant is made and encoded, besides its box, format and quality. The short form and JSON both have a name and
/// a value: `effort:6`, `"effort": 6`. In the short form the name alone means yes.
public enum VariantOption: String, CaseIterable, Hashable, Sendable {
    /// WebP, animated AVIF and JPEG XL: keeps every pixel exactly. Still AVIF and HEIC: keeps each value within one
    /// step of 255.
    case lossless
    /// WebP: changes pixels slightly and then encodes losslessly; 100 changes none, 0 the most.
    case nearLossless = "near-lossless"
    /// How much time the encoder spends: WebP 0–6, AVIF 0–9, JPEG XL 3–9, PNG's palette 1–10. GIF accepts 1–10 and
    /// ignores it.
    case effort
    /// JPEG: several scans of growing detail; PNG: interlaced.
    case progressive
    /// JPEG, AVIF and HEIC: colour at full (444) or half (420) resolution. With `auto` the quality decides, except that
    /// HEIC has half.
    case chroma
    /// Maximum number of colours in a palette: exact for GIF; for PNG the next lower of 2, 4, 16 and 256.
    case colours
    /// Maximum file size in bytes; the encoder lowers the quality until the file fits.
    case maxBytes = "max-bytes"
    /// The colour behind transparent pixels if the format has no alpha.
    case background
    /// Keeps EXIF, XMP and IPTC.
    case keepMetadata = "keep-metadata"
    /// Removes EXIF's Artist and Copyright too.
    case stripCopyright = "strip-copyright"
    /// Keeps the embedded colour profile, and does not convert colours.
    case keepProfile = "keep-profile"
    /// Keeps the smallest file of these formats, each at its quality. Without a list: WebP, AVIF, and JPEG or PNG. An
    /// animation becomes the smallest of those that can be animated.
    case auto
    /// The name of the registered coder that encodes the variant.
    case coder
    /// Uses only the first frame of an animation.
    case decodeFirstFrameOnly = "decode-first-frame-only"
    /// Applies effects to every frame of an animation. Without it only the box is applied.
    case transformAnimatedImage = "transform-animated-image"
    /// Scales down a source whose pixels take more RGBA bytes than this.
    case scaleDownLargeImages = "scale-down-large-images"

    var parameter: Parameter {
        let kind: Parameter.Kind =
            switch self {
            case .lossless, .progressive, .keepMetadata, .stripCopyright, .keepProfile, .decodeFirstFrameOnly,
                .transformAnimatedImage:
                .flag
            case .coder: .name
            case .nearLossless: .whole(0...100)
            case .effort: .whole(0...10)
            case .chroma: .word(["auto", "420", "444"])
            case .colours: .whole(2...256)
            case .maxBytes, .scaleDownLargeImages: .whole(1...1 << 40)
            case .background: .opaqueColour
            case .auto: .words(VariantSpec.Output.stillFormats.map(\.rawValue).sorted())
            }
        return Parameter(rawValue, kind)
    }

    /// The value that equals leaving the option out.
    var silent: ParameterValue? {
        switch self {
        case .lossless, .progressive, .keepMetadata, .stripCopyright, .keepProfile, .decodeFirstFrameOnly,
            .transformAnimatedImage:
            .flag(false)
        case .chroma: .word("auto")
        case .background: .colour(.white)
        case .coder, .nearLossless, .effort, .colours, .maxBytes, .auto, .scaleDownLargeImages: nil
        }
    }

    /// The value that the bare name stands for.
    var alone: ParameterValue? {
        switch self {
        case .lossless, .progressive, .keepMetadata, .stripCopyright, .keepProfile, .decodeFirstFrameOnly,
            .transformAnimatedImage:
            .flag(true)
        // SDWebImage's limit: 60 MiB.
        case .scaleDownLargeImages: .number(62_914_560)
        case .nearLossless: .number(60)
        case .colours: .number(256)
        case .auto: .words(["avif", "jpeg", "png", "webp"])
        case .coder, .effort, .chroma, .maxBytes, .background: nil
        }
    }

    /// Whether it has an effect on an encoder of this format.
    package func applies(to format: VariantSpec.Output) -> Bool {
        switch self {
        case .lossless: [.webp, .avif, .jxl, .heic].contains(format)
        case .nearLossless: format == .webp
        case .effort: format.efforts != nil
        case .progressive: [.jpeg, .png].contains(format)
        case .chroma: [.jpeg, .avif, .heic].contains(format)
        case .colours: [.png, .gif].contains(format)
        case .coder: false
        case .maxBytes, .keepMetadata, .stripCopyright, .keepProfile, .background, .auto, .decodeFirstFrameOnly,
            .transformAnimatedImage, .scaleDownLargeImages:
            true
        }
    }
}

extension VariantOption {
    /// Whether it has an effect if a registered coder writes the file: such a coder gets only pixels and a quality.
    var appliesToCoders: Bool {
        switch self {
        case .coder, .auto, .maxBytes, .background, .decodeFirstFrameOnly, .transformAnimatedImage,
            .scaleDownLargeImages:
            true
        case .lossless, .nearLossless, .effort, .progressive, .chroma, .colours, .keepMetadata, .stripCopyright,
            .keepProfile:
            false
        }
    }
}

/// The options that were given, by name.
package struct VariantOptions: Hashable, Sendable {
    /// The options as given, including those with the silent value: a job's default does not override them.
    package private(set) var given: [VariantOption: ParameterValue] = [:]

    package init() {}

    /// The options that have an effect.
    package var values: [VariantOption: ParameterValue] { given.filter { $0.value != $0.key.silent } }

    package mutating func set(_ option: VariantOption, _ value: ParameterValue?) { given[option] = value }

    /// Sorted by name, for an identity.
    var canonical: [String] {
        values.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key.rawValue)=\($0.value.canonical)" }
    }

    package func flag(_ option: VariantOption) -> Bool { given[option] == .flag(true) }

    package func whole(_ option: VariantOption) -> Int? {
        if case .number(let value)? = given[option] { Int(value) } else { nil }
    }

    package func word(_ option: VariantOption) -> String? {
        if case .word(let value)? = given[option] { value } else { nil }
    }

    /// Whether an encoder of this format keeps all pixels, or nearly all, as they are.
    package func areLossless(for format: VariantSpec.Output) -> Bool {
        flag(.lossless) && VariantOption.lossless.applies(to: format)
            || format == .webp && whole(.nearLossless) != nil
    }

    package var background: Colour {
        if case .colour(let value)? = given[.background] { value } else { .white }
    }

    /// The formats to choose from, in the order of ``VariantSpec/Output``, or nil.
    package var candidates: [VariantSpec.Output]? {
        guard case .words(let words)? = given[.auto] else { return nil }
        return VariantSpec.Output.allCases.filter { words.contains($0.rawValue) }
    }
}

/// The parts of a variant, for help texts: generated from the tables that the parser uses.
public enum VariantReference {
    /// Each effect in the short form, with optional parts in brackets: `blur:SIGMA`.
    public static var effects: [String] { EffectKind.allCases.map { Effect.usage(of: $0) } }

    public static var options: [String] { VariantOption.allCases.map(\.rawValue) }

    public static var positions: [String] { Position.words.dropLast() + ["focus:X:Y"] }

    public static var formats: [String] { VariantSpec.Output.allCases.map(\.rawValue) }
}
