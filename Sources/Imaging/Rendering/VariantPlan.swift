internal import Core
public import SystemPackage
public import Variants

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

/// One variant of one picture: what is done to its pixels and how they are encoded.
struct VariantPlan {
    let variant: VariantOutput
    /// The formats it may be written in, of which the smallest file is taken. At least one.
    let formats: [VariantSpec.Output]
    /// Where nothing but the box changes the picture's size.
    let placement: Placement
    let metadata: MetadataPolicy
    /// Whether all frames of an animation are written, and not only its first.
    let isMoving: Bool
    /// Whether the source's own bytes are what was asked for.
    let isPassedThrough: Bool
    /// The coder that is asked to write it: the one that is named, or the source's where no format is.
    let ownCoder: (any ImageCoder)?
    private let source: DecodedSource
    /// The source's, or what is left of it where large images are scaled down.
    private let sourceSize: PixelSize
    private let limits: ImageLimits

    var spec: VariantSpec { variant.spec }

    /// - Throws: class `transform` where the result would pass a limit; `delegate` where it names a coder that isn't
    ///   registered.
    init(
        _ variant: VariantOutput, of source: DecodedSource, limits: ImageLimits, coders: CoderRegistry,
    ) throws(Failure) {
        self.variant = variant
        self.source = source
        self.limits = limits
        let spec = variant.spec
        let isAnimation = source.animation != nil && !spec.options.flag(.decodeFirstFrameOnly)
        formats = spec.formats(for: source.facts, isAnimation: isAnimation)
        ownCoder = try Self.coder(for: spec, of: source, coders)
        isMoving = isAnimation && Self.canMove(spec, formats, ownCoder)
        metadata = MetadataPolicy(spec.options)
        let size = PixelSize(width: source.facts.width, height: source.facts.height)
        sourceSize = spec.options.whole(.scaleDownLargeImages).map { size.scaledDown(toBytes: $0) } ?? size
        placement = Placement(of: sourceSize, for: spec)
        isPassedThrough =
            !source.isLenient && placement == Placement(scaled: size, output: size)
            && (spec.asksForReductionOnly || spec.asksForNoMore(than: source, formats))
        try check(placement)
    }

    private static func coder(
        for spec: VariantSpec, of source: DecodedSource, _ coders: CoderRegistry,
    ) throws(Failure) -> (any ImageCoder)? {
        guard let name = spec.coderName else {
            return spec.format == nil && spec.options.candidates == nil ? source.coder : nil
        }
        if let coder = coders.coder(named: name) { return coder }
        throw Failure(.delegate, "Variant '\(spec.name)' names the coder '\(name)', which is not registered.")
    }

    private static func canMove(
        _ spec: VariantSpec, _ formats: [VariantSpec.Output], _ coder: (any ImageCoder)?,
    ) -> Bool {
        spec.coderName == nil ? formats.contains(where: \.isAnimated) : coder is any AnimationCoder
    }

    /// The pixels that a base must have for this variant. Who passes through only looks whether they are all there.
    var neededSize: PixelSize {
        if isPassedThrough { return source.glimpse }
        return spec.effectsInOrder.first?.kind == .resize ? placement.scaled : sourceSize
    }

    /// - Throws: class `transform` where a result of this size would pass a limit.
    func check(_ placement: Placement) throws(Failure) {
        let output = placement.output
        for format in formats where max(output.width, output.height) > format.largestSide {
            throw refusal(output, "and \(format.rawValue) ends at \(format.largestSide) a side")
        }
        // Scaled is the larger of the two where a crop follows.
        let largest = output.pixels < placement.scaled.pixels ? placement.scaled : output
        guard largest.pixels <= limits.pixels else {
            throw refusal(largest, "and the limit is \(limits.pixels) in all")
        }
    }

    private func refusal(_ size: PixelSize, _ why: String) -> Failure {
        let size = "\(size.width)×\(size.height)"
        return Failure(.transform, "Variant '\(spec.name)' would be \(size) pixels, \(why).")
    }

    /// The same failure, naming the variant.
    func failure(_ error: Failure) -> Failure {
        Failure(error.failureClass, "Variant '\(spec.name)': \(error.message)")
    }

    /// - Parameters:
    ///   - base: upright pixels in memory, at least of ``neededSize`` or as large as the source.
    ///   - runner: has what effects name.
    func write(from base: Picture, _ runner: EffectRunner) throws(Failure) -> Rendition {
        if isPassedThrough { return try passThrough() }
        let picture = try rendered(from: base, runner)
        if let rendition = try writeInItsOwnFormat(picture) { return rendition }
        do throws(VipsFailure) {
            let format = try VariantWriter(spec: spec, formats: formats).write(picture, to: variant.output)
            return rendition(of: picture.storedSize, format)
        } catch {
            throw error.error(.encode, "Variant '\(spec.name)' could not be encoded or written")
        }
    }

    /// As a registered coder writes it: the one that is named, or the source's own where no format is.
    ///
    /// - Returns: nil where it is for the built-in encoders.
    private func writeInItsOwnFormat(_ picture: Picture) throws(Failure) -> Rendition? {
        guard let coder = ownCoder else { return nil }
        do {
            guard let image = try RGBAImage(picture),
                let bytes = try coder.checkedFile(of: image, quality: spec.quality)
            else {
                guard spec.coderName != nil else { return nil }
                throw Failure(.encode, "The coder '\(coder.name)' writes no files.")
            }
            if let most = spec.options.whole(.maxBytes), bytes.count > most {
                throw Failure(
                    .encode, "The \(bytes.count) bytes of the \(coder.name) are more than \(most); name a quality.")
            }
            _ = try variant.output.writeAll(bytes)
            return Rendition(name: spec.name, width: image.width, height: image.height, formatName: coder.name)
        } catch let error as Failure {
            throw failure(error)
        } catch {
            throw Failure(.encode, "Variant '\(spec.name)' could not be written: \(error).")
        }
    }

    /// The source's bytes as they are.
    func passThrough() throws(Failure) -> Rendition {
        do {
            try source.lend { bytes in _ = try variant.output.writeAll(bytes) }
        } catch {
            throw Failure(.encode, "Variant '\(spec.name)' could not be written: \(error).")
        }
        return Rendition(
            name: spec.name, width: sourceSize.width, height: sourceSize.height, formatName: source.facts.formatName)
    }

    func rendition(of size: PixelSize, _ format: VariantSpec.Output) -> Rendition {
        Rendition(name: spec.name, width: size.width, height: size.height, format: format.imageFormat)
    }

    /// The picture with its box and its effects.
    func rendered(from base: Picture, _ runner: EffectRunner) throws(Failure) -> Picture {
        var position = spec.position
        return try rendered(from: base, runner, at: &position)
    }

    /// - Parameter position: of an animation's frame it is fixed here for those that follow.
    func rendered(
        from base: Picture, _ runner: EffectRunner, at position: inout Position,
    ) throws(Failure) -> Picture {
        var picture = base
        var hasChanged = false
        for effect in spec.effectsInOrder {
            if effect.kind == .resize {
                picture = try boxed(picture, hasChanged ? placement(after: picture) : placement, at: &position)
            } else {
                // A base may have more pixels than this variant's source, for others' sake.
                if !hasChanged { picture = try scaled(picture, to: sourceSize) }
                picture = try runner.apply(effect, to: picture)
            }
            hasChanged = true
        }
        let size = picture.storedSize
        try check(Placement(scaled: size, output: size))
        return picture
    }

    /// What came before the resize has changed the picture's size.
    private func placement(after picture: Picture) throws(Failure) -> Placement {
        let placement = Placement(of: picture.storedSize, for: spec)
        try check(placement)
        return placement
    }

    private func boxed(
        _ picture: Picture, _ placement: Placement, at position: inout Position,
    ) throws(Failure) -> Picture {
        let scaled = try scaled(picture, to: placement.scaled)
        do throws(VipsFailure) {
            if isMoving { position = try position.fixed(on: scaled, placement) }
            return try scaled.placed(
                placement, at: position, transparent: formats.allSatisfy(\.hasAlpha),
                background: spec.options.background)
        } catch {
            throw error.error(.transform, "Variant '\(spec.name)' could not be made")
        }
    }

    private func scaled(_ picture: Picture, to size: PixelSize) throws(Failure) -> Picture {
        do throws(VipsFailure) {
            return try picture.resized(to: size)
        } catch {
            throw error.error(.transform, "Variant '\(spec.name)' could not be made")
        }
    }
}

extension Placement {
    init(of source: PixelSize, for spec: VariantSpec) {
        self.init(of: source, width: spec.width, height: spec.height, fit: spec.fit, enlarge: spec.enlarge)
    }
}
