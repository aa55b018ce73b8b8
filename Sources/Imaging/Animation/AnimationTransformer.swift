/// Turns an animation into animated variants: each frame is decoded once, and goes to all of them.
struct AnimationTransformer {
    /// An animated variant on its way.
    private struct Output {
        let plan: VariantPlan
        let sink: any FrameSink
    }

    private let source: any FrameSource
    private let scaler = FrameScaler()

    /// - Parameter bytes: must stay where they are as long as this is in use.
    /// - Throws: class `too-many-pixels`, `truncated` or `bad-image`.
    init(_ bytes: UnsafeRawBufferPointer, as format: ImageFormat, limits: ImageLimits) throws(ImagingError) {
        switch format {
        case .gif: source = try GIFFrameSource(bytes: bytes, limits: limits)
        case .webp: source = try WebPFrameSource(bytes: bytes, limits: limits)
        case .jpeg, .png, .tiff, .heic, .avif:
            throw ImagingError(code: .transform, message: "Animated \(format.rawValue) is not supported.")
        }
    }

    /// Decodes all frames and writes every variant.
    ///
    /// - Parameter plans: of formats that can be animated.
    func write(_ plans: [VariantPlan]) throws(ImagingError) {
        let outputs = try plans.map { plan throws(ImagingError) in
            Output(plan: plan, sink: try plan.sink(loopCount: source.loopCount))
        }
        while let frame = try source.next() { try add(frame, to: outputs) }
        for output in outputs {
            do throws(ImagingError) { try output.sink.finish() } catch { throw output.plan.failure(error) }
        }
    }

    /// Variants of the same geometry share the scaled frame.
    private func add(_ frame: AnimationFrame, to outputs: [Output]) throws(ImagingError) {
        var made: [Placement: PixelBuffer] = [:]
        for output in outputs {
            let placement = output.plan.placement
            do throws(ImagingError) {
                let pixels: PixelBuffer
                if let same = made[placement] {
                    pixels = same
                } else {
                    pixels = try scaler.placed(frame.pixels, placement)
                }
                made[placement] = pixels
                try output.sink.add(pixels, duration: frame.duration)
            } catch {
                throw output.plan.failure(error)
            }
        }
    }
}
