internal import Core
import ImageFiles
public import SystemPackage
public import Variants

/// A variant, and the file for it.
public struct VariantOutput: Sendable {
    public let spec: VariantSpec
    /// Open for writing, and empty. It stays open.
    public let output: FileDescriptor

    public init(spec: VariantSpec, output: FileDescriptor) {
        self.spec = spec
        self.output = output
    }
}

/// One variant of one picture: the operations on its pixels, and its encoding.
struct VariantPlan {
    let variant: VariantOutput
    /// The candidate formats; the smallest file is kept. At least one.
    let formats: [VariantSpec.Output]
    /// The placement, if only the box changes the picture's size.
    let placement: Placement
    let metadata: MetadataPolicy
    /// Whether all frames of an animation are written, and not only its first.
    let isMoving: Bool
    /// Whether the source's own bytes already equal the variant.
    let isPassedThrough: Bool
    /// The registered coder that writes it: the named one, or the source's if the variant names no format.
    let ownCoder: (any ImageCoder)?
    private let source: DecodedSource
    /// The source's size, reduced if large images are scaled down.
    private let sourceSize: PixelSize
    private let limits: ImageLimits

    var spec: VariantSpec { variant.spec }

    /// - Throws: class `transform` if the result would exceed a limit; `delegate` if it names a coder that is not
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

    /// The minimum size of a base for this variant. Passing through only checks that all pixels are there.
    var neededSize: PixelSize {
        if isPassedThrough { return source.glimpse }
        return spec.effectsInOrder.first?.kind == .resize ? placement.scaled : sourceSize
    }

    /// - Throws: class `transform` if a result of this size would exceed a limit.
    func check(_ placement: Placement) throws(Failure) {
        let output = placement.output
        for format in formats where max(output.width, output.height) > format.largestSide {
            throw refusal(output, "and \(format.rawValue) ends at \(format.largestSide) a side")
        }
        // Before a crop the scaled picture is the larger one.
        let largest = output.pixels < placement.scaled.pixels ? placement.scaled : output
        guard largest.pixels <= limits.pixels else {
            throw refusal(largest, "and the limit is \(limits.pixels) in all")
        }
    }

    private func refusal(_ size: PixelSize, _ why: String) -> Failure {
        let size = "\(size.width)×\(size.height)"
        return Failure(.transform, "Variant '\(spec.name)' would be \(size) pixels, \(why).")
    }

    /// The same failure, with the variant's name.
    func failure(_ error: Failure) -> Failure {
        Failure(error.failureClass, "Variant '\(spec.name)': \(error.message)")
    }

    /// - Parameters:
    ///   - base: upright pixels in memory, at least of ``neededSize`` or as large as the source.
    ///   - runner: has the pictures and transforms that effects name.
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

    /// Writes it with a registered coder: the named one, or the source's own if the variant names no format.
    ///
    /// - Returns: nil if a built-in encoder must write it.
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

    /// Copies the source's bytes.
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

    /// The picture after its box and its effects.
    func rendered(from base: Picture, _ runner: EffectRunner) throws(Failure) -> Picture {
        var position = spec.position
        return try rendered(from: base, runner, at: &position)
    }

    /// - Parameter position: for an animation's first frame, fixed here for the frames after it.
    func rendered(
        from base: Picture, _ runner: EffectRunner, at position: inout Position,
    ) throws(Failure) -> Picture {
        var picture = base
        var hasChanged = false
        for effect in spec.effectsInOrder {
            if effect.kind == .resize {
                picture = try boxed(picture, hasChanged ? placement(after: picture) : placement, at: &position)
            } else {
                // A base may have more pixels than this variant's reduced source, since other variants need them.
                if !hasChanged { picture = try scaled(picture, to: sourceSize) }
                picture = try runner.apply(effect, to: picture)
            }
            hasChanged = true
        }
        let size = picture.storedSize
        try check(Placement(scaled: size, output: size))
        return picture
    }

    /// The placement after effects before the resize have changed the picture's size.
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
