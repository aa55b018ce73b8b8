public import SystemPackage

/// A variant, and the file it goes into.
public struct VariantOutput: Sendable {
    public let spec: VariantSpec
    /// Open for writing, and empty. It stays open.
    public let output: FileDescriptor

    public init(spec: VariantSpec, output: FileDescriptor) {
        self.spec = spec
        self.output = output
    }
}

/// Turns one source into its variants: decoded once, at the size the largest of them needs.
///
/// Blocks the calling thread, so it belongs on a thread or in a process of its own. Several threads may use it at once.
public struct Transformer: Sendable {
    private let limits: ImageLimits
    private let firstFrameOnly: Bool

    /// - Parameter firstFrameOnly: animations are taken for their first frame, in every format. It changes renditions,
    ///   so it belongs to their identity.
    public init(limits: ImageLimits, firstFrameOnly: Bool = false) {
        self.limits = limits
        self.firstFrameOnly = firstFrameOnly
    }

    /// What the header says; no pixel is decoded.
    ///
    /// - Parameter source: a regular file, read from its first byte whatever its offset, and left open.
    /// - Throws: class `not-an-image`, `bad-image`, `truncated` or `too-many-pixels`; `transform` when the file can't
    ///   be read.
    public func facts(of source: FileDescriptor) throws(ImagingError) -> ImageFacts {
        try ImagingRuntime.start()
        return try SourceMapping(source).lend { bytes throws(ImagingError) in
            try DecodedSource(bytes, limits: limits).facts
        }
    }

    /// Decodes once and writes every variant: animations stay animated in the formats that can be, and give their first
    /// frame to the others.
    ///
    /// - Parameters:
    ///   - source: as for ``facts(of:)``.
    ///   - outputs: any number; none only reports the facts, and decodes nothing unless the file looks cut short.
    /// - Throws: as ``facts(of:)``, and class `transform` for what can't be made from this picture, `encode` when an
    ///   encoder fails or the file can't be written. Files written until then hold anything.
    public func transform(
        _ source: FileDescriptor, into outputs: [VariantOutput],
    ) throws(ImagingError) -> TransformReport {
        try ImagingRuntime.start()
        return try SourceMapping(source).lend { bytes throws(ImagingError) in
            let source = try DecodedSource(bytes, limits: limits)
            let isAnimation = !firstFrameOnly && source.animation != nil
            let plans = try outputs.map { output throws(ImagingError) in
                try VariantPlan(output, of: source.facts, isAnimation: isAnimation, limits: limits)
            }
            guard !plans.isEmpty else {
                try source.checkEnd()
                return TransformReport(facts: source.facts, renditions: [])
            }
            let renditions = try write(plans, of: source, bytes, isAnimation: isAnimation)
            return TransformReport(facts: source.facts, renditions: renditions)
        }
    }

    private func write(
        _ plans: [VariantPlan], of source: DecodedSource, _ bytes: UnsafeRawBufferPointer, isAnimation: Bool,
    ) throws(ImagingError) -> [Rendition] {
        if let animation = source.animation { try animation.checkEnd() }
        let moving = plans.filter { isAnimation && $0.format.isAnimated }
        let still = plans.filter { !isAnimation || !$0.format.isAnimated }
        if !still.isEmpty {
            let base = try source.pixels(for: still.map(\.placement.scaled))
            for plan in still { try plan.write(from: base) }
        }
        if !moving.isEmpty {
            let transformer = try AnimationTransformer(bytes, as: source.facts.format, limits: limits)
            try transformer.write(moving)
        }
        return plans.map(\.rendition)
    }
}
