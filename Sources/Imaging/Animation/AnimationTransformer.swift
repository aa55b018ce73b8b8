/// Turns an animation into animated variants: each frame is decoded once, and goes to all of them.
struct AnimationTransformer {
    private let source: any FrameSource
    private let runner: EffectRunner

    /// - Throws: class `too-many-pixels`, `truncated` or `bad-image`.
    init(_ source: DecodedSource, limits: ImageLimits, runner: EffectRunner) throws(ImagingError) {
        let bytes = source.lend { $0 }
        switch source.facts.format {
        case .gif: self.source = try GIFFrameSource(bytes: bytes, limits: limits)
        case .webp: self.source = try WebPFrameSource(bytes: bytes, limits: limits)
        case .jpeg, .png, .tiff, .heic, .avif, .jxl, .bmp, nil:
            throw ImagingError(
                code: .transform, message: "Animated \(source.facts.formatName) is not supported.")
        }
        self.runner = runner
    }

    /// Decodes all frames and writes every variant.
    ///
    /// - Parameter plans: of formats that can be animated.
    func write(_ plans: [VariantPlan]) throws(ImagingError) -> [Rendition] {
        let outputs = plans.map { AnimatedVariant(plan: $0, loopCount: source.loopCount, runner: runner) }
        while let frame = try source.next() { try add(frame, to: outputs) }
        return try outputs.map { output throws(ImagingError) in
            do throws(ImagingError) { return try output.finish() } catch { throw output.plan.failure(error) }
        }
    }

    /// Variants of the same geometry share the scaled frame.
    private func add(_ frame: AnimationFrame, to outputs: [AnimatedVariant]) throws(ImagingError) {
        var made: [AnimatedVariant.Geometry: PixelBuffer] = [:]
        for output in outputs {
            do throws(ImagingError) {
                let known = made[output.geometry]
                let pixels = if let known, !output.hasEffects { known } else { try output.rendered(frame.pixels) }
                if !output.hasEffects { made[output.geometry] = pixels }
                try output.add(pixels, duration: frame.duration)
            } catch {
                throw output.plan.failure(error)
            }
        }
    }
}
