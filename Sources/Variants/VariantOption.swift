/// How a variant is made and encoded, beyond its box, format and quality. Each is written as its name and its one value,
/// in both forms: `effort:6`, `"effort": 6`; where the value is yes, the name alone does in short.
public enum VariantOption: String, CaseIterable, Hashable, Sendable {
    /// Every pixel exactly. WebP, AVIF and JPEG XL.
    case lossless
    /// WebP: lossless after pixels were nudged; 100 nudges none, 0 the most.
    case nearLossless = "near-lossless"
    /// How long the encoder may try: WebP 0–6, AVIF 0–9, JPEG XL 3–9, PNG's palette 1–10; GIF takes 1–10 and has
    /// one only.
    case effort
    /// JPEG: in scans that sharpen; PNG: interlaced.
    case progressive
    /// Colour at full (444) or half (420) resolution, or as the quality suggests (auto). JPEG and AVIF.
    case chroma
    /// At most so many colours, in a palette: GIF's as they are, PNG's the next lower of 2, 4, 16 and 256.
    case colours
    /// The largest file that will do, in bytes. Quality is lowered until it fits.
    case maxBytes = "max-bytes"
    /// What shows through where the format has no alpha.
    case background
    /// EXIF, XMP and IPTC stay.
    case keepMetadata = "keep-metadata"
    /// Not even whose picture it is stays: EXIF's Artist and Copyright.
    case stripCopyright = "strip-copyright"
    /// The embedded colour profile stays, and so do the colours it tells of.
    case keepProfile = "keep-profile"
    /// The smallest of these formats, each at its quality: of WebP, AVIF and what JPEG and PNG are for, unless named.
    case auto
    /// A registered coder writes it, by its name.
    case coder
    /// The first frame of an animation only.
    case decodeFirstFrameOnly = "decode-first-frame-only"
    /// Effects are applied to every frame of an animation; else it is only brought to its box.
    case transformAnimatedImage = "transform-animated-image"
    /// A source whose pixels take more bytes than this, as RGBA, is taken for one that doesn't.
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

    /// The value that says nothing: a spec with it and one without ask for the same.
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

    /// What the name alone stands for.
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

    /// Whether it says anything to an encoder of this format.
    package func applies(to format: VariantSpec.Output) -> Bool {
        switch self {
        case .lossless: [.webp, .avif, .jxl].contains(format)
        case .nearLossless: format == .webp
        case .effort: format.efforts != nil
        case .progressive: [.jpeg, .png].contains(format)
        case .chroma: [.jpeg, .avif].contains(format)
        case .colours: [.png, .gif].contains(format)
        case .coder: false
        case .maxBytes, .keepMetadata, .stripCopyright, .keepProfile, .background, .auto, .decodeFirstFrameOnly,
            .transformAnimatedImage, .scaleDownLargeImages:
            true
        }
    }
}

extension VariantOption {
    /// Whether it says anything where a registered coder writes the file: it gets pixels, a quality and nothing else.
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
    /// With those that were told to say nothing, which what a job says of all its variants doesn't change.
    package private(set) var given: [VariantOption: ParameterValue] = [:]

    package init() {}

    /// Those that say something.
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

/// What may stand in a variant, for help texts: made from the same tables that variants are read by.
public enum VariantReference {
    /// Each effect as it is written, what is optional in brackets: `blur:SIGMA`.
    public static var effects: [String] { EffectKind.allCases.map { Effect.usage(of: $0) } }

    public static var options: [String] { VariantOption.allCases.map(\.rawValue) }

    public static var positions: [String] { Position.words.dropLast() + ["focus:X:Y"] }

    public static var formats: [String] { VariantSpec.Output.allCases.map(\.rawValue) }
}
