public import Core
public import ImageFiles
public import SystemPackage
import Variants

/// Transforms one source into its variants: decodes it once, at the size that the largest of them needs.
///
/// Blocks the calling thread, so call it on a thread or in a process of its own. Several threads may call it at once.
public struct Transformer: Sendable {
    private let limits: ImageLimits
    private let extensions: ImagingExtensions
    private let isAlone: Bool

    /// - Parameter isAlone: whether no other code in this process uses libvips meanwhile, as in a helper. If not, every
    ///   JPEG is read a second time to check that it is complete.
    public init(limits: ImageLimits, extensions: ImagingExtensions = ImagingExtensions(), isAlone: Bool = false) {
        self.limits = limits
        self.extensions = extensions
        self.isAlone = isAlone
    }

    /// The facts of the header; no pixel is decoded.
    ///
    /// - Parameter source: a regular file, read from its first byte at any offset, and left open.
    /// - Throws: class `not-an-image`, `bad-image`, `truncated` or `too-many-pixels`; `transform` if the file cannot be
    ///   read.
    public func facts(of source: FileDescriptor) throws(Failure) -> ImageFacts {
        try ImagingRuntime.start()
        return try SourceMapping(source).lend { bytes throws(Failure) in
            try DecodedSource(bytes, limits: limits, coders: extensions.coders).facts
        }
    }

    /// Decodes the source once and writes every variant. Animations stay animated in formats that support it; other
    /// formats get the first frame.
    ///
    /// - Parameters:
    ///   - source: as for ``facts(of:)``.
    ///   - assets: a file for each name in the variants' ``VariantSpec/assetNames``, as for ``facts(of:)``.
    ///   - outputs: any number. Without any, the picture is decoded at its decoder's smallest size, since only that
    ///     shows whether it is complete.
    ///   - tolerance: the damage to accept in the source.
    /// - Throws: as ``facts(of:)``; `transform` for a variant that cannot be made from this picture, `delegate` if a
    ///   registered transform fails, `encode` if an encoder fails or the file cannot be written. Files that were
    ///   written before the error have undefined contents.
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

    /// Transforms the visible part of a file that cannot be decoded to its end.
    private func transformDamaged(
        _ bytes: UnsafeRawBufferPointer, _ outputs: [VariantOutput], _ assets: [String: FileDescriptor],
        _ tolerance: DecodeTolerance, _ damage: Failure,
    ) throws(Failure) -> TransformReport {
        do {
            // Removes the part that was written before the failure.
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
            // If no part is visible either, the first failure is reported.
            throw [.badImage, .truncated].contains(error.failureClass) ? damage : error
        }
    }

    /// The report of ``transform(_:into:assets:)`` for a source without variants, if it is a still of at most this many
    /// pixels; nil for all others, of which only the header was read.
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
