import ImageFiles
internal import SystemPackage
import Variants

/// Encodes a finished picture by its spec: in one format or the smallest of several, within its maximum bytes.
struct VariantWriter {
    let spec: VariantSpec
    /// At least one.
    let formats: [VariantSpec.Output]

    /// - Returns: the format of the file that was kept.
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
                // The smallest file's format is tried first: the format that needs the fewest bytes for this quality
                // also looks best if the file must be smaller still.
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

    /// The file, or a smaller one if it exceeds the maximum bytes.
    private func fitted(
        _ file: EncodedFile, _ picture: Picture, _ format: VariantSpec.Output,
    ) throws(VipsFailure) -> EncodedFile {
        guard let most = spec.options.whole(.maxBytes), file.count > most else { return file }
        return try squeezed(prepared(picture, format).inMemory(), encoding(format), into: most)
    }

    /// The file of the highest quality, or of the greatest number of colours, that has at most `most` bytes, found by
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

// The result of a spec for one source.

extension VariantSpec {
    /// The candidate formats; the smallest file is kept.
    func formats(for facts: ImageFacts, isAnimation: Bool) -> [Output] {
        if let format { return [format] }
        guard let candidates = options.candidates else { return [facts.keptFormat(isAnimation: isAnimation)] }
        if isAnimation {
            let moving = candidates.filter(\.isAnimated)
            let smaller = moving.filter { $0 != .png || facts.hasAlpha }
            if !moving.isEmpty { return smaller.isEmpty ? moving : smaller }
        }
        // PNG suits no photographs, and JPEG cannot store transparency.
        let fitting = candidates.filter { $0 != (facts.hasAlpha ? .jpeg : .png) }
        return fitting.isEmpty ? candidates : fitting
    }

    /// Whether it requests the source as it is, unless that is too large.
    var asksForReductionOnly: Bool {
        width == nil && height == nil && format == nil && quality == nil && effects.isEmpty
            && Set(options.values.keys) == [.scaleDownLargeImages]
    }

    /// Whether the source, at its present size, already equals this spec's rendition.
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
