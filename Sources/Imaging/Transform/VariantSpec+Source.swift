// What a spec comes to for one source.

extension VariantSpec {
    /// The formats it may be written in, of which the smallest file is taken.
    func formats(for facts: ImageFacts, isAnimation: Bool) -> [Output] {
        if let format { return [format] }
        guard let candidates = options.candidates else { return [facts.keptFormat(isAnimation: isAnimation)] }
        if isAnimation, candidates.contains(.webp) { return [.webp] }
        // Photographs are not for PNG, and JPEG can't show what is transparent.
        let fitting = candidates.filter { $0 != (facts.hasAlpha ? .jpeg : .png) }
        return fitting.isEmpty ? candidates : fitting
    }

    /// Whether the source, at the size it has, is all that this spec asks for.
    func asksForNoMore(than source: DecodedSource, _ formats: [Output]) -> Bool {
        guard effects.isEmpty, quality == nil, formats.map(\.imageFormat.rawValue) == [source.facts.formatName] else {
            return false
        }
        for (option, value) in options.values {
            switch (option, value) {
            case (.keepMetadata, _), (.stripCopyright, _), (.keepProfile, _), (.background, _),
                (.scaleDownLargeImages, _),
                (.transformAnimatedImage, _):
                continue
            case (.maxBytes, .number(let most)) where Double(source.byteCount) <= most: continue
            case (.decodeFirstFrameOnly, _) where source.animation == nil: continue
            default: return false
            }
        }
        return source.isPlain(MetadataPolicy(options))
    }
}

extension ImageFacts {
    /// The format of a variant that names none: the source's own where it is written here, else GIF for an animation and
    /// for a still one by its alpha. A still GIF is better off as one of those, and so is a TIFF, which no browser shows.
    func keptFormat(isAnimation: Bool) -> VariantSpec.Output {
        switch format {
        case .gif where isAnimation, nil where isAnimation: .gif
        case .gif, .tiff, .heic, .bmp, nil: hasAlpha ? .png : .jpeg
        case .jpeg: .jpeg
        case .png: .png
        case .webp: .webp
        case .avif: .avif
        case .jxl: .jxl
        }
    }
}
