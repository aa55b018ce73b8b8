internal import Core
import ImageFiles
internal import SystemPackage
import Variants

/// The format of an animated variant and the strength of its compression.
struct AnimationEncoding {
    private enum Writer {
        case builtIn(any AnimationSaver)
        case registered(any AnimationCoder)
    }

    /// The format's name, as results show it.
    let formatName: String
    /// Lowered until a file is small enough: WebP's quality, GIF's number of colours, a registered coder's quality.
    var strength: Int
    /// The lowest useful strength; nil if the format has none.
    let weakest: Int?
    private let writer: Writer
    private let quality: Int?

    init(_ plan: VariantPlan) {
        let coder = plan.ownCoder as? any AnimationCoder
        self = coder.map { Self($0, quality: plan.spec.quality) } ?? Self(builtInFor: plan)
    }

    /// The encodings from which a variant keeps the smallest file, in the order in which they are tried; the first is
    /// ``init(_:)``'s. WebP comes first, since its encoder has no limits of its own.
    static func candidates(_ plan: VariantPlan) -> [AnimationEncoding] {
        guard plan.formats.count > 1, plan.ownCoder == nil else { return [AnimationEncoding(plan)] }
        return order(plan.formats).map { AnimationEncoding(plan, $0) }
    }

    /// The formats with animations among these; each of them has a saver for animations.
    private static func order(_ formats: [VariantSpec.Output]) -> [VariantSpec.Output] {
        [.webp, .png, .gif, .avif, .jxl].filter(formats.contains)
    }

    private init(_ coder: any AnimationCoder, quality: Int?) {
        self.quality = quality
        (writer, formatName) = (.registered(coder), coder.name)
        (strength, weakest) = (quality ?? 80, 1)
    }

    /// The built-in encoder, also if the plan's registered coder writes no animations: WebP if no format for animations
    /// was named.
    private init(builtInFor plan: VariantPlan) {
        self.init(plan, Self.order(plan.formats).first ?? .webp)
    }

    private init(_ plan: VariantPlan, _ format: VariantSpec.Output) {
        guard let saver = format.imageFormat.definition.saver?.animated(plan.spec) else {
            preconditionFailure("\(format) has no animations")
        }
        quality = plan.spec.quality
        (writer, formatName) = (.builtIn(saver), format.rawValue)
        (strength, weakest) = (saver.strength, saver.weakest)
    }

    /// Whether the file can store a colour profile.
    var holdsProfile: Bool { if case .builtIn(let saver) = writer { saver.holdsProfile } else { false } }

    /// The time that it takes: see ``AnimationOutline/cost(_:)``.
    func cost(_ outline: AnimationOutline) -> Int {
        if case .builtIn(let saver) = writer { outline.cost(saver.slowness(outline)) } else { outline.pixels }
    }

    /// Begins a file.
    ///
    /// - Returns: the sink, and the encoding in use: if a coder that the variant does not name writes no animations, a
    ///   built-in encoder replaces it.
    func begin(
        _ plan: VariantPlan, _ outline: AnimationOutline, _ metadata: AnimationMetadata,
    ) throws(Failure) -> (sink: any FrameSink, encoding: AnimationEncoding) {
        let output = plan.variant.output
        switch writer {
        case .builtIn(let saver):
            return (try saver.begin(output, outline, strength: strength, metadata), self)
        case .registered(let coder):
            let isPressed = quality != nil || strength < 80
            if let sink = try RegisteredFrameSink(
                coder, output, size: outline.size, loopCount: outline.loopCount, quality: isPressed ? strength : nil)
            {
                return (sink, self)
            }
            guard plan.spec.coderName == nil else {
                throw Failure(.encode, "The coder '\(coder.name)' writes no animations.")
            }
            return try AnimationEncoding(builtInFor: plan).begin(plan, outline, metadata)
        }
    }
}
