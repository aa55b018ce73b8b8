/// One variant of one picture: where its pixels go and how they are encoded.
struct VariantPlan {
    let placement: Placement
    private let variant: VariantOutput
    private let format: VariantSpec.Output

    private var spec: VariantSpec { variant.spec }

    /// - Throws: class `transform` where the result would pass a limit.
    init(_ variant: VariantOutput, of facts: ImageFacts, limits: ImageLimits) throws(ImagingError) {
        self.variant = variant
        let spec = variant.spec
        format = spec.format ?? facts.keptFormat
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
    func write(from base: Picture) throws(ImagingError) -> Rendition {
        let picture = try rendered(from: base)
        do throws(VipsFailure) {
            try picture.write(as: format, quality: spec.quality, to: variant.output)
        } catch {
            throw error.error(.encode, "Variant '\(spec.name)' could not be encoded or written")
        }
        let size = picture.storedSize
        return Rendition(name: spec.name, width: size.width, height: size.height, format: format.imageFormat)
    }

    private func rendered(from base: Picture) throws(ImagingError) -> Picture {
        do throws(VipsFailure) {
            let scaled = try base.resized(to: placement.scaled)
            let opaque = format.hasAlpha ? scaled : try scaled.flattenedOnWhite()
            return try opaque.placed(placement, transparent: format.hasAlpha)
        } catch {
            throw error.error(.transform, "Variant '\(spec.name)' could not be made")
        }
    }
}

extension ImageFacts {
    /// The format of a variant that names none: the source's own where it is written here, else by its alpha.
    fileprivate var keptFormat: VariantSpec.Output {
        VariantSpec.Output(rawValue: format.rawValue) ?? (hasAlpha ? .png : .jpeg)
    }
}
