public import Variants

/// A variant with commands, split into stages: helpers make the parts between the commands, and the worker runs the
/// commands.
///
/// A command gets one picture, so an animation is reduced to its first frame. It gets a PNG in sRGB without metadata,
/// and metadata in its output are dropped.
public struct StagedVariant: Sendable {
    public struct Command: Hashable, Sendable {
        public let name: String
        public let argument: String
    }

    /// In their order; at least one.
    public let commands: [Command]
    private let spec: VariantSpec
    /// The effects before, between and after the commands.
    private let stages: [[Effect]]

    /// Nil if the variant has no command.
    public init?(_ spec: VariantSpec) {
        let effects = spec.effectsInOrder
        commands = effects.filter { $0.kind == .command }.map {
            Command(name: $0.word("name"), argument: $0.word("argument"))
        }
        guard !commands.isEmpty else { return nil }
        self.spec = spec
        stages = effects.split(omittingEmptySubsequences: false) { $0.kind == .command }.map(Array.init)
    }

    /// The picture for the first command, made from the source.
    public func first() throws(VariantSpecError) -> VariantSpec {
        var options = VariantOptions()
        options.set(.decodeFirstFrameOnly, .flag(true))
        if let bytes = spec.options.given[.scaleDownLargeImages] { options.set(.scaleDownLargeImages, bytes) }
        return try stage(0, format: .png, options)
    }

    /// The rendition made from the output of the command at `index`: the picture for the next command, or the variant.
    ///
    /// - Parameter source: the facts of the variant's source, whose format is kept if the variant names none.
    public func spec(after index: Int, of source: ImageFacts) throws(VariantSpecError) -> VariantSpec {
        guard index == commands.count - 1 else { return try stage(index + 1, format: .png, VariantOptions()) }
        let isChosen = spec.options.candidates != nil
        let format = spec.format ?? (isChosen ? nil : source.keptFormat(isAnimation: false))
        var options = VariantOptions()
        for (option, value) in spec.options.values where option != .scaleDownLargeImages {
            if format.map(option.applies) ?? true { options.set(option, value) }
        }
        return try stage(index + 1, format: format, options)
    }

    private func stage(
        _ index: Int, format: VariantSpec.Output?, _ options: VariantOptions,
    ) throws(VariantSpecError) -> VariantSpec {
        let isBoxed = stages[index].contains { $0.kind == .resize }
        let isLast = index == commands.count
        let hasQuality = isLast && (format.map { $0.defaultQuality != nil } ?? true)
        var stage = spec
        if !isBoxed { (stage.width, stage.height) = (nil, nil) }
        if !hasQuality { stage.quality = nil }
        (stage.format, stage.effects, stage.options) = (format, stages[index], options)
        return try stage.checked()
    }
}

extension VariantSpec {
    /// The registered transforms that its effects name.
    public var transformNames: Set<String> { names(of: .delegate) }

    /// The commands that its effects name.
    public var commandNames: Set<String> { names(of: .command) }

    private func names(of kind: EffectKind) -> Set<String> {
        Set(effects.filter { $0.kind == kind }.map { $0.word("name") })
    }
}

extension ImageFacts {
    /// The format of a variant that names none: the source's own if it can be written, otherwise GIF for an animation,
    /// and PNG or JPEG by its alpha for a still. A TIFF, a HEIC and a GIF of one frame become PNG or JPEG too, although
    /// these formats can be written.
    package func keptFormat(isAnimation: Bool) -> VariantSpec.Output {
        format?.header.keptFormat ?? (isAnimation ? .gif : hasAlpha ? .png : .jpeg)
    }
}
