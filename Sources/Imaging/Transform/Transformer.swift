public import Core
public import SystemPackage
import Variants

/// Turns one source into its variants: decoded once, at the size the largest of them needs.
///
/// Blocks the calling thread, so it belongs on a thread or in a process of its own. Several threads may use it at once.
public struct Transformer: Sendable {
    private let limits: ImageLimits
    private let extensions: ImagingExtensions
    private let isAlone: Bool

    /// - Parameter isAlone: nothing else in this process uses libvips while it works, as in a helper. JPEGs are read a
    ///   second time where it isn't so, to find out whether they are whole.
    public init(limits: ImageLimits, extensions: ImagingExtensions = ImagingExtensions(), isAlone: Bool = false) {
        self.limits = limits
        self.extensions = extensions
        self.isAlone = isAlone
    }

    /// What the header says; no pixel is decoded.
    ///
    /// - Parameter source: a regular file, read from its first byte whatever its offset, and left open.
    /// - Throws: class `not-an-image`, `bad-image`, `truncated` or `too-many-pixels`; `transform` when the file can't
    ///   be read.
    public func facts(of source: FileDescriptor) throws(Failure) -> ImageFacts {
        try ImagingRuntime.start()
        return try SourceMapping(source).lend { bytes throws(Failure) in
            try DecodedSource(bytes, limits: limits, coders: extensions.coders).facts
        }
    }

    /// Decodes once and writes every variant: animations stay animated in the formats that can be, and give their first
    /// frame to the others.
    ///
    /// - Parameters:
    ///   - source: as for ``facts(of:)``.
    ///   - assets: a file for each name that is among the variants' ``VariantSpec/assetNames``, as for ``facts(of:)``.
    ///   - outputs: any number. The picture is decoded for none too, as small as its decoder can: only that tells
    ///     whether it is whole.
    ///   - tolerance: what may be wrong with the source.
    /// - Throws: as ``facts(of:)``, and class `transform` for what can't be made from this picture, `delegate` when a
    ///   registered transform fails, `encode` when an encoder fails or the file can't be written. Files written until then hold anything.
    public func transform(
        _ source: FileDescriptor, into outputs: [VariantOutput], assets: [String: FileDescriptor] = [:],
        tolerance: DecodeTolerance = DecodeTolerance(),
    ) throws(Failure) -> TransformReport {
        try ImagingRuntime.start()
        return try SourceMapping(source).lend { bytes throws(Failure) in
            do throws(Failure) {
                return try transform(bytes, outputs, assets, tolerance, isLenient: false)
            } catch {
                guard tolerance.acceptsDamage, [.badImage, .truncated].contains(error.failureClass) else { throw error }
                return try transformDamaged(bytes, outputs, assets, tolerance, error)
            }
        }
    }

    private func transform(
        _ bytes: UnsafeRawBufferPointer, _ outputs: [VariantOutput], _ assets: [String: FileDescriptor],
        _ tolerance: DecodeTolerance, isLenient: Bool,
    ) throws(Failure) -> TransformReport {
        let source = try DecodedSource(
            bytes, limits: limits, coders: extensions.coders, isAlone: isAlone, isLenient: isLenient)
        let plans = try outputs.map { output throws(Failure) in
            try VariantPlan(output, of: source, limits: limits, coders: extensions.coders)
        }
        return try TransformRun(
            source: source, limits: limits, extensions: extensions, assets: assets,
            firstFrameSuffices: tolerance.firstFrameSuffices
        ).write(plans)
    }

    /// What can be seen of a file that can't be decoded to its end.
    private func transformDamaged(
        _ bytes: UnsafeRawBufferPointer, _ outputs: [VariantOutput], _ assets: [String: FileDescriptor],
        _ tolerance: DecodeTolerance, _ damage: Failure,
    ) throws(Failure) -> TransformReport {
        do {
            // What was written of it until then.
            for output in outputs {
                try output.output.resize(to: 0)
                try output.output.seek(offset: 0, from: .start)
            }
        } catch {
            throw Failure(.encode, "A file can't be written anew: \(error).")
        }
        do throws(Failure) {
            let report = try transform(bytes, outputs, assets, tolerance, isLenient: true)
            var facts = report.facts
            facts.damage = damage.message
            return TransformReport(facts: facts, renditions: report.renditions)
        } catch {
            // Where nothing can be seen either, the first reason is the better one.
            throw [.badImage, .truncated].contains(error.failureClass) ? damage : error
        }
    }

    /// What ``transform(_:into:assets:)`` tells of a source that nothing is made of, where it is a still of no more than so
    /// many pixels; nil for all others, of which only the header was read.
    public func report(
        ofStill source: FileDescriptor, upTo pixels: Int,
    ) throws(Failure) -> TransformReport? {
        try ImagingRuntime.start()
        return try SourceMapping(source).lend { bytes throws(Failure) in
            let source = try DecodedSource(bytes, limits: limits, coders: extensions.coders, isAlone: isAlone)
            guard source.animation == nil, source.facts.width * source.facts.height <= pixels else { return nil }
            return try TransformRun(
                source: source, limits: limits, extensions: extensions, assets: [:], firstFrameSuffices: false
            ).write([])
        }
    }
}
