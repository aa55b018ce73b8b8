internal import Core
import ImageFiles
internal import SystemPackage
import Variants

/// An animated variant that is being written. Its file begins with the first frame, and all frames must have its size.
final class AnimatedVariant {
    /// The properties that determine a frame's pixels if there are no effects.
    struct Geometry: Hashable {
        let placement: Placement
        let position: Position
        let isConverted: Bool
    }

    let plan: VariantPlan
    private(set) var encoding: AnimationEncoding
    /// Of the source; the variant has another size.
    private let outline: AnimationOutline
    private let runner: EffectRunner
    private let colours: FrameColours?
    private let metadata: AnimationMetadata
    private let scaler = FrameScaler()
    private var sink: (any FrameSink)?
    private var size: PixelSize
    /// As the variant names it; from the first frame on, the part of the picture that was found in that frame.
    private var position: Position
    private var isFixed = false

    /// - Parameters:
    ///   - colours: the conversion for variants that don't keep the source's profile.
    ///   - metadata: the source's metadata, as far as the variant's policy allows.
    init(
        plan: VariantPlan, encoding: AnimationEncoding?, outline: AnimationOutline, runner: EffectRunner,
        colours: FrameColours?, metadata: AnimationMetadata,
    ) {
        self.plan = plan
        self.encoding = encoding ?? AnimationEncoding(plan)
        self.outline = outline
        self.runner = runner
        self.colours = plan.metadata.keepsProfile && self.encoding.holdsProfile ? nil : colours
        self.metadata = metadata
        size = plan.placement.output
        position = plan.spec.position
    }

    var geometry: Geometry {
        Geometry(placement: plan.placement, position: plan.spec.position, isConverted: colours != nil)
    }

    /// Without `transform-animated-image` an animation is only brought to its box, and its effects are left out.
    var hasEffects: Bool { !plan.spec.effects.isEmpty && plan.spec.options.flag(.transformAnimatedImage) }

    func rendered(_ frame: PixelBuffer) throws(Failure) -> PixelBuffer {
        // Frames are decoded anyway, since a damaged file must not be passed through.
        if plan.isPassedThrough { return frame }
        guard hasEffects else {
            try fixPosition(on: frame)
            return try inItsColours(scaler.placed(frame, plan.placement, at: position))
        }
        return try plan.rendered(from: inItsColours(frame).picture(), runner, at: &position).pixelBuffer()
    }

    private func fixPosition(on frame: PixelBuffer) throws(Failure) {
        guard !isFixed else { return }
        isFixed = true
        guard plan.placement.isCropped else { return }
        let picture = try scaler.scaled(frame, to: plan.placement.scaled).picture()
        do throws(VipsFailure) {
            position = try position.fixed(on: picture, plan.placement)
        } catch {
            throw error.error(.transform, "The part of the first frame could not be found")
        }
    }

    private func inItsColours(_ frame: PixelBuffer) throws(Failure) -> PixelBuffer {
        if let colours { try colours.inSRGB(frame) } else { frame }
    }

    func add(_ pixels: PixelBuffer, duration: Int) throws(Failure) {
        if plan.isPassedThrough { return }
        let sink: any FrameSink = if let begun = self.sink { begun } else { try begin(pixels.size) }
        guard pixels.size == size else {
            throw Failure(.transform, "its frames came out in different sizes; leave out 'trim' for animations.")
        }
        try sink.add(pixels, duration: duration)
    }

    func finish() throws(Failure) -> Rendition {
        if plan.isPassedThrough { return try plan.passThrough() }
        guard let sink else { throw Failure(.encode, "The animation has no frame to write.") }
        try sink.finish()
        self.sink = nil
        return Rendition(
            name: plan.spec.name, width: size.width, height: size.height, formatName: encoding.formatName)
    }

    private func begin(_ size: PixelSize) throws(Failure) -> any FrameSink {
        var outline = outline
        outline.size = size
        let (sink, encoding) = try encoding.begin(plan, outline, metadata)
        self.sink = sink
        self.encoding = encoding
        self.size = size
        return sink
    }
}
