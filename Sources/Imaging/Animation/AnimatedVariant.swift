internal import SystemPackage

/// An animated variant on its way. Its file is begun with the first frame, whose size all others must have.
final class AnimatedVariant {
    /// What decides a frame's pixels where there are no effects.
    struct Geometry: Hashable {
        let placement: Placement
        let position: Position
    }

    let plan: VariantPlan
    private let loopCount: Int
    private let runner: EffectRunner
    private let scaler = FrameScaler()
    private var sink: (any FrameSink)?
    private var size: PixelSize

    init(plan: VariantPlan, loopCount: Int, runner: EffectRunner) {
        self.plan = plan
        self.loopCount = loopCount
        self.runner = runner
        size = plan.placement.output
    }

    var geometry: Geometry { Geometry(placement: plan.placement, position: plan.spec.position) }

    /// Without `transform-animated-image` an animation is brought to its box, and its effects are left out.
    var hasEffects: Bool { !plan.spec.effects.isEmpty && plan.spec.options.flag(.transformAnimatedImage) }

    func rendered(_ frame: PixelBuffer) throws(ImagingError) -> PixelBuffer {
        // Frames are decoded all the same, since a file that can't be is not passed on.
        if plan.isPassedThrough { return frame }
        guard hasEffects else { return try scaler.placed(frame, plan.placement, at: plan.spec.position) }
        return try plan.rendered(from: frame.picture(), runner).pixelBuffer()
    }

    func add(_ pixels: PixelBuffer, duration: Int) throws(ImagingError) {
        if plan.isPassedThrough { return }
        let sink: any FrameSink = if let begun = self.sink { begun } else { try begin(pixels.size) }
        guard pixels.size == size else {
            throw ImagingError(
                code: .transform, message: "its frames came out in different sizes; leave out 'trim' for animations.")
        }
        try sink.add(pixels, duration: duration)
    }

    func finish() throws(ImagingError) -> Rendition {
        if plan.isPassedThrough { return try plan.passThrough() }
        guard let sink else { throw ImagingError(code: .encode, message: "The animation has no frame to write.") }
        try sink.finish()
        try checkBytes()
        return plan.rendition(of: size, format)
    }

    private var format: VariantSpec.Output { plan.formats.first(where: \.isAnimated) ?? .webp }

    private func begin(_ size: PixelSize) throws(ImagingError) -> any FrameSink {
        let spec = plan.spec
        let output = plan.variant.output
        let sink: any FrameSink
        if format == .gif {
            sink = try GIFFrameSink(output, size: size, loopCount: loopCount)
        } else {
            let isLossless = spec.options.flag(.lossless) || spec.options.whole(.nearLossless) != nil
            sink = try WebPFrameSink(
                output, size: size, loopCount: loopCount,
                compression: isLossless ? .lossless : .lossy(quality: spec.quality ?? 80),
                effort: min(spec.options.whole(.effort) ?? 4, 6))
        }
        self.sink = sink
        self.size = size
        return sink
    }

    /// An animation isn't encoded again and again until it fits.
    private func checkBytes() throws(ImagingError) {
        guard let most = plan.spec.options.whole(.maxBytes) else { return }
        // A file that can't be measured was still written whole.
        let count = (try? plan.variant.output.seek(offset: 0, from: .end)) ?? 0
        guard count > most else { return }
        throw ImagingError(
            code: .encode,
            message: "its \(count) bytes are more than \(most), and an animation's quality is not lowered.")
    }
}
