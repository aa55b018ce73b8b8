internal import SystemPackage
import Variants

/// Encodes a finished picture as its spec says: in one format or the smallest of several, and within its bytes.
struct VariantWriter {
    let spec: VariantSpec
    /// At least one.
    let formats: [VariantSpec.Output]

    /// - Returns: the format that was taken.
    func write(_ picture: Picture, to descriptor: FileDescriptor) throws(VipsFailure) -> VariantSpec.Output {
        let picture = try picture.withMetadata(MetadataPolicy(spec.options))
        if let only = formats.first, formats.count == 1, spec.options.whole(.maxBytes) == nil {
            try prepared(picture, only).write(encoding(only), to: descriptor)
            return only
        }
        var files: [(format: VariantSpec.Output, file: EncodedFile)] = []
        var failure: VipsFailure?
        for format in formats {
            do throws(VipsFailure) {
                files.append((format, try encoded(picture, format)))
                // The smallest at this quality looks best when all have to be smaller still, so only order matters.
                files.sort { $0.file.count < $1.file.count }
            } catch {
                failure = error
            }
        }
        for (format, file) in files {
            do throws(VipsFailure) {
                try fitted(file, picture, format).write(to: descriptor)
                return format
            } catch {
                failure = error
            }
        }
        throw failure ?? VipsFailure(text: "there is no format to choose from")
    }

    private func encoding(_ format: VariantSpec.Output) -> Encoding {
        Encoding(format, quality: spec.quality, spec.options)
    }

    private func prepared(_ picture: Picture, _ format: VariantSpec.Output) throws(VipsFailure) -> Picture {
        format.hasAlpha ? picture : try picture.flattened(on: spec.options.background)
    }

    private func encoded(_ picture: Picture, _ format: VariantSpec.Output) throws(VipsFailure) -> EncodedFile {
        try prepared(picture, format).inMemory().encoded(encoding(format))
    }

    /// The file, or a smaller one where it may not have so many bytes.
    private func fitted(
        _ file: EncodedFile, _ picture: Picture, _ format: VariantSpec.Output,
    ) throws(VipsFailure) -> EncodedFile {
        guard let most = spec.options.whole(.maxBytes), file.count > most else { return file }
        return try squeezed(prepared(picture, format).inMemory(), encoding(format), into: most)
    }

    /// The highest quality, or the greatest number of colours, whose file is no larger than `most` bytes, found by
    /// bisection.
    private func squeezed(
        _ picture: Picture, _ encoding: Encoding, into most: Int,
    ) throws(VipsFailure) -> EncodedFile {
        guard let (strength, weakest) = encoding.strength else {
            throw VipsFailure(
                text: "it is larger than \(most) bytes, and \(encoding.format.rawValue) has no quality to lower")
        }
        var encoding = encoding
        var tooHigh = encoding[keyPath: strength]
        var low = weakest - 1
        var best: EncodedFile?
        while tooHigh - low > 1 {
            encoding[keyPath: strength] = (low + tooHigh) / 2
            let file = try picture.encoded(encoding)
            if file.count <= most {
                (best, low) = (file, encoding[keyPath: strength])
            } else {
                tooHigh = encoding[keyPath: strength]
            }
        }
        guard let best else { throw VipsFailure(text: "it is larger than \(most) bytes even at the lowest quality") }
        return best
    }
}

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

    /// Whether it asks for the source as it is, unless that is too large.
    var asksForReductionOnly: Bool {
        width == nil && height == nil && format == nil && quality == nil && effects.isEmpty
            && Set(options.values.keys) == [.scaleDownLargeImages]
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
        format?.definition.keptFormat ?? (isAnimation ? .gif : hasAlpha ? .png : .jpeg)
    }
}
