internal import SystemPackage

/// How an animated variant is written, and how hard it is pressed.
struct AnimationEncoding {
    /// Who writes it.
    private enum Encoder {
        case gif
        /// Without a compression it is lossy, as hard as ``strength`` says.
        case webp(WebPFrameSettings.Compression?, effort: Int)
        case registered(any AnimationCoder)
    }

    /// The format's name, as results show it.
    let formatName: String
    /// Lowered until a file is small enough: WebP's quality, GIF's number of colours, a registered coder's quality.
    var strength: Int
    /// The least that makes sense; nil where there is nothing to lower.
    let weakest: Int?
    private let encoder: Encoder
    private let quality: Int?

    init(_ plan: VariantPlan) {
        let coder = plan.ownCoder as? any AnimationCoder
        self = coder.map { Self($0, quality: plan.spec.quality) } ?? Self(builtInFor: plan)
    }

    private init(_ coder: any AnimationCoder, quality: Int?) {
        self.quality = quality
        (encoder, formatName) = (.registered(coder), coder.name)
        (strength, weakest) = (quality ?? 80, 1)
    }

    /// Ours, also for a plan whose registered coder writes no animations.
    private init(builtInFor plan: VariantPlan) {
        let spec = plan.spec
        quality = spec.quality
        if plan.formats.first(where: \.isAnimated) == .gif {
            (encoder, formatName) = (.gif, ImageFormat.gif.rawValue)
            (strength, weakest) = (spec.options.whole(.colours) ?? ColourTable.most, 2)
        } else {
            (encoder, formatName, strength, weakest) = Self.webp(spec)
        }
    }

    private static func webp(_ spec: VariantSpec) -> (Encoder, String, Int, Int?) {
        let near = spec.options.whole(.nearLossless)
        let isLossless = spec.options.flag(.lossless) || near != nil
        let encoder = Encoder.webp(
            isLossless ? .lossless(nearLossless: near) : nil, effort: min(spec.options.whole(.effort) ?? 4, 6))
        return (encoder, ImageFormat.webp.rawValue, spec.quality ?? 80, isLossless ? nil : 1)
    }

    /// Whether a colour profile may stand in it.
    var holdsProfile: Bool { if case .webp = encoder { true } else { false } }

    /// Begins a file.
    ///
    /// - Returns: with the encoding it really has: a coder that isn't named and writes no animations gives way to one of ours.
    func begin(
        _ plan: VariantPlan, size: PixelSize, loopCount: Int, _ metadata: AnimationMetadata,
    ) throws(ImagingError) -> (sink: any FrameSink, encoding: AnimationEncoding) {
        let output = plan.variant.output
        switch encoder {
        case .gif:
            let sink = try GIFFrameSink(
                output, size: size, loopCount: loopCount, colours: strength, metadata: metadata)
            return (sink, self)
        case .webp(let compression, let effort):
            let settings = WebPFrameSettings(compression: compression ?? .lossy(quality: strength), effort: effort)
            let sink = try WebPFrameSink(output, size: size, loopCount: loopCount, settings, metadata: metadata)
            return (sink, self)
        case .registered(let coder):
            let isPressed = quality != nil || strength < 80
            if let sink = try RegisteredFrameSink(
                coder, output, size: size, loopCount: loopCount, quality: isPressed ? strength : nil)
            {
                return (sink, self)
            }
            guard plan.spec.coderName == nil else {
                throw ImagingError(code: .encode, message: "The coder '\(coder.name)' writes no animations.")
            }
            return try AnimationEncoding(builtInFor: plan).begin(
                plan, size: size, loopCount: loopCount, metadata)
        }
    }
}
