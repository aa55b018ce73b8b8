internal import Core
import ImageFiles
import Variants

/// Transforms an animation into animated variants: each frame is decoded once, for all of them.
struct AnimationTransformer {
    private let source: DecodedSource
    private let limits: ImageLimits
    private let runner: EffectRunner

    init(_ source: DecodedSource, limits: ImageLimits, runner: EffectRunner) {
        self.source = source
        self.limits = limits
        self.runner = runner
    }

    /// Decodes all frames and writes every variant.
    ///
    /// - Parameter plans: of formats that can be animated.
    /// - Throws: class `too-many-pixels`, `truncated` or `bad-image`; `encode`, `transform`.
    func write(_ plans: [VariantPlan]) throws(Failure) -> [Rendition] {
        let (outputs, renditions) = try encoded(plans.map { ($0, AnimationEncoding?.none) })
        var results: [Rendition] = []
        for (output, rendition) in zip(outputs, renditions) {
            do throws(Failure) {
                results.append(try chosen(output, rendition))
            } catch {
                throw output.plan.failure(error)
            }
        }
        return results
    }

    private func encoded(
        _ wanted: [(VariantPlan, AnimationEncoding?)],
    ) throws(Failure) -> ([AnimatedVariant], [Rendition]) {
        let frames = try source.frames(limits: limits)
        let colours = source.frameColours
        let outputs = try wanted.map { plan, encoding throws(Failure) in
            AnimatedVariant(
                plan: plan, encoding: encoding,
                outline: AnimationOutline(size: frames.canvas, frames: frames.frameCount, loopCount: frames.loopCount),
                runner: runner, colours: colours, metadata: try source.animationMetadata(plan.metadata))
        }
        while let frame = try frames.next() { try add(frame, to: outputs) }
        let renditions = try outputs.map { output throws(Failure) in
            do throws(Failure) { return try output.finish() } catch { throw output.plan.failure(error) }
        }
        return (outputs, renditions)
    }

    /// The smallest of the variant's formats, within its `max-bytes`.
    ///
    /// - Parameter rendition: the one in the first of these formats, which was written together with other variants.
    private func chosen(_ output: AnimatedVariant, _ rendition: Rendition) throws(Failure) -> Rendition {
        let plan = output.plan
        guard !plan.isPassedThrough else { return rendition }
        let attempts = AnimationAttempts(
            output: plan.variant.output, decoding: source.facts,
            encode: { (encoding) throws(Failure) in
                try encoded([(plan, encoding)]).1.first ?? rendition
            })
        let first = AnimationAttempts.File(output.encoding, rendition, try attempts.size())
        return try attempts.best(first, of: AnimationEncoding.candidates(plan), plan.spec.options.whole(.maxBytes))
    }

    /// Variants of the same geometry share the scaled frame.
    private func add(_ frame: AnimationFrame, to outputs: [AnimatedVariant]) throws(Failure) {
        var made: [AnimatedVariant.Geometry: PixelBuffer] = [:]
        for output in outputs {
            do throws(Failure) {
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
