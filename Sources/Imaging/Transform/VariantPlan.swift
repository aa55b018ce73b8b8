/// One variant of one picture: where its pixels go and how they are encoded.
struct VariantPlan {
    let placement: Placement
    let format: VariantSpec.Output
    private let variant: VariantOutput

    private var spec: VariantSpec { variant.spec }

    /// - Parameter isAnimation: the source's frames are all there to be used, and not only its first.
    /// - Throws: class `transform` where the result would pass a limit.
    init(
        _ variant: VariantOutput, of facts: ImageFacts, isAnimation: Bool, limits: ImageLimits,
    ) throws(ImagingError) {
        self.variant = variant
        let spec = variant.spec
        format = spec.format ?? facts.keptFormat(isAnimation: isAnimation)
        placement = Placement(
            of: PixelSize(width: facts.width, height: facts.height),
            width: spec.width,
            height: spec.height,
            fit: spec.fit,
            enlarge: spec.enlarge,
        )
        let output = placement.output
        guard max(output.width, output.height) <= format.largestSide else {
            throw refusal("and \(format.rawValue) ends at \(format.largestSide) a side")
        }
        // Scaled is the larger of the two where a crop follows.
        guard max(output.pixels, placement.scaled.pixels) <= limits.pixels else {
            throw refusal("and the limit is \(limits.pixels) in all")
        }
    }

    private func refusal(_ why: String) -> ImagingError {
        let size = "\(placement.output.width)×\(placement.output.height)"
        return ImagingError(code: .transform, message: "Variant '\(spec.name)' would be \(size) pixels, \(why).")
    }

    /// - Parameter base: upright pixels in memory, at least as large as the placement or as large as the source.
    func write(from base: Picture) throws(ImagingError) {
        let picture = try rendered(from: base)
        do throws(VipsFailure) {
            try picture.write(as: format, quality: spec.quality, to: variant.output)
        } catch {
            throw error.error(.encode, "Variant '\(spec.name)' could not be encoded or written")
        }
    }

    /// What is written.
    var rendition: Rendition {
        let size = placement.output
        return Rendition(name: spec.name, width: size.width, height: size.height, format: format.imageFormat)
    }

    private func rendered(from base: Picture) throws(ImagingError) -> Picture {
        do throws(VipsFailure) {
            // The base was scaled with care; what is cut from it takes the short way, which changes pixels by less than 1 %.
            let scaled = try base.resized(to: placement.scaled, gap: 1)
            let opaque = format.hasAlpha ? scaled : try scaled.flattenedOnWhite()
            return try opaque.placed(placement, transparent: format.hasAlpha)
        } catch {
            throw error.error(.transform, "Variant '\(spec.name)' could not be made")
        }
    }
}

// MARK: - Animation

extension VariantPlan {
    /// Where the frames of this variant go.
    ///
    /// - Throws: class `encode`; `transform` for a format without animation.
    func sink(loopCount: Int) throws(ImagingError) -> any FrameSink {
        switch format {
        case .webp:
            let quality = spec.quality ?? format.defaultQuality ?? 0
            return try WebPFrameSink(
                variant.output, size: placement.output, loopCount: loopCount, compression: .lossy(quality: quality))
        case .gif: return try GIFFrameSink(variant.output, size: placement.output, loopCount: loopCount)
        case .jpeg, .png, .avif:
            throw ImagingError(code: .transform, message: "\(format.rawValue) is not written with several frames.")
        }
    }

    /// The same failure, naming the variant.
    func failure(_ error: ImagingError) -> ImagingError {
        ImagingError(code: error.code, message: "Variant '\(spec.name)': \(error.message)")
    }
}

extension ImageFacts {
    /// The format of a variant that names none: the source's own where it is written here, else by its alpha. A still
    /// GIF is better off as one of the others.
    fileprivate func keptFormat(isAnimation: Bool) -> VariantSpec.Output {
        let own = VariantSpec.Output(rawValue: format.rawValue)
        if let own, own != .gif || isAnimation { return own }
        return hasAlpha ? .png : .jpeg
    }
}
