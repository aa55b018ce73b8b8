/// One variant of one picture: what is done to its pixels and how they are encoded.
struct VariantPlan {
    private let variant: VariantOutput
    private let facts: ImageFacts
    private let limits: ImageLimits
    private let formats: [VariantSpec.Output]
    private let placement: Placement
    let metadata: MetadataPolicy

    private var spec: VariantSpec { variant.spec }

    /// - Throws: class `transform` where the result would pass a limit.
    init(_ variant: VariantOutput, of facts: ImageFacts, limits: ImageLimits) throws(ImagingError) {
        self.variant = variant
        self.facts = facts
        self.limits = limits
        let spec = variant.spec
        metadata = MetadataPolicy(spec.options)
        formats = spec.formats(for: facts)
        placement = Placement(of: PixelSize(width: facts.width, height: facts.height), for: spec)
        try check(placement)
    }

    /// The pixels that a base must have for this variant.
    var neededSize: PixelSize {
        let isFirst = spec.effectsInOrder.first?.kind == .resize
        return isFirst ? placement.scaled : PixelSize(width: facts.width, height: facts.height)
    }

    private func check(_ placement: Placement) throws(ImagingError) {
        let output = placement.output
        for format in formats where max(output.width, output.height) > format.largestSide {
            throw refusal(output, "and \(format.rawValue) ends at \(format.largestSide) a side")
        }
        // Scaled is the larger of the two where a crop follows.
        guard max(output.pixels, placement.scaled.pixels) <= limits.pixels else {
            throw refusal(output, "and the limit is \(limits.pixels) in all")
        }
    }

    private func refusal(_ size: PixelSize, _ why: String) -> ImagingError {
        ImagingError(
            code: .transform, message: "Variant '\(spec.name)' would be \(size.width)×\(size.height) pixels, \(why).")
    }

    /// - Parameters:
    ///   - base: upright pixels in memory, at least of ``neededSize`` or as large as the source.
    ///   - assets: the pictures that effects name.
    func write(from base: Picture, assets: [String: Picture]) throws(ImagingError) -> Rendition {
        let picture = try rendered(from: base, assets)
        do throws(VipsFailure) {
            let format = try VariantWriter(spec: spec, formats: formats).write(picture, to: variant.output)
            let size = picture.storedSize
            return Rendition(name: spec.name, width: size.width, height: size.height, format: format.imageFormat)
        } catch {
            throw error.error(.encode, "Variant '\(spec.name)' could not be encoded or written")
        }
    }

    private func rendered(from base: Picture, _ assets: [String: Picture]) throws(ImagingError) -> Picture {
        let runner = EffectRunner(assets: assets, limits: limits)
        var picture = base
        var isFirst = true
        for effect in spec.effectsInOrder {
            if effect.kind == .resize {
                picture = try boxed(picture, isFirst ? placement : try placement(after: picture))
            } else {
                picture = try runner.apply(effect, to: picture)
            }
            isFirst = false
        }
        let size = picture.storedSize
        try check(Placement(scaled: size, output: size))
        return picture
    }

    /// What came before the resize has changed the picture's size.
    private func placement(after picture: Picture) throws(ImagingError) -> Placement {
        let placement = Placement(of: picture.storedSize, for: spec)
        try check(placement)
        return placement
    }

    private func boxed(_ picture: Picture, _ placement: Placement) throws(ImagingError) -> Picture {
        do throws(VipsFailure) {
            return try picture.resized(to: placement.scaled).placed(
                placement, at: spec.position, transparent: formats.allSatisfy(\.hasAlpha),
                background: spec.options.background)
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

extension VariantSpec {
    /// The formats it may be written in, of which the smallest file is taken.
    func formats(for facts: ImageFacts) -> [Output] {
        if let format { return [format] }
        guard let candidates = options.candidates else { return [facts.keptFormat] }
        // Photographs are not for PNG, and JPEG can't show what is transparent.
        let fitting = candidates.filter { $0 != (facts.hasAlpha ? .jpeg : .png) }
        return fitting.isEmpty ? candidates : fitting
    }
}

extension ImageFacts {
    /// The format of a variant that names none: the source's own where it is written here, else by its alpha.
    fileprivate var keptFormat: VariantSpec.Output {
        switch format {
        case .gif, .tiff, .heic: hasAlpha ? .png : .jpeg
        case .jpeg, .png, .webp, .avif, .jxl: VariantSpec.Output(rawValue: format.rawValue) ?? .png
        }
    }
}
