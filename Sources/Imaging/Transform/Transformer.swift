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
    private let extensions: ImagingExtensions

    public init(limits: ImageLimits, extensions: ImagingExtensions = ImagingExtensions()) {
        self.limits = limits
        self.extensions = extensions
    }

    /// What the header says; no pixel is decoded.
    ///
    /// - Parameter source: a regular file, read from its first byte whatever its offset, and left open.
    /// - Throws: class `not-an-image`, `bad-image`, `truncated` or `too-many-pixels`; `transform` when the file can't
    ///   be read.
    public func facts(of source: FileDescriptor) throws(ImagingError) -> ImageFacts {
        try ImagingRuntime.start()
        return try SourceMapping(source).lend { bytes throws(ImagingError) in
            try DecodedSource(bytes, limits: limits, coders: extensions.coders).facts
        }
    }

    /// The same for a still that shows no sign of ending early; nil for everything else.
    public func factsOfWhole(_ source: FileDescriptor) throws(ImagingError) -> ImageFacts? {
        try ImagingRuntime.start()
        return try SourceMapping(source).lend { bytes throws(ImagingError) in
            let source = try DecodedSource(bytes, limits: limits, coders: extensions.coders)
            return source.isWholeStill ? source.facts : nil
        }
    }

    /// Decodes once and writes every variant: animations stay animated in the formats that can be, and give their first
    /// frame to the others.
    ///
    /// - Parameters:
    ///   - source: as for ``facts(of:)``.
    ///   - assets: a file for each name that is among the variants' ``VariantSpec/assetNames``, as for ``facts(of:)``.
    ///   - outputs: any number; none only reports the facts, and decodes nothing unless the file looks cut short.
    /// - Throws: as ``facts(of:)``, and class `transform` for what can't be made from this picture, `delegate` when a
    ///   registered transform fails, `encode` when an encoder fails or the file can't be written. Files written until then hold anything.
    public func transform(
        _ source: FileDescriptor, into outputs: [VariantOutput], assets: [String: FileDescriptor] = [:],
    ) throws(ImagingError) -> TransformReport {
        try ImagingRuntime.start()
        return try SourceMapping(source).lend { bytes throws(ImagingError) in
            let source = try DecodedSource(bytes, limits: limits, coders: extensions.coders)
            let plans = try outputs.map { output throws(ImagingError) in
                try VariantPlan(output, of: source, limits: limits, coders: extensions.coders)
            }
            guard !plans.isEmpty else {
                try source.checkEnd()
                return TransformReport(facts: source.facts, renditions: [])
            }
            return try TransformRun(source: source, limits: limits, extensions: extensions, assets: assets).write(plans)
        }
    }
}
