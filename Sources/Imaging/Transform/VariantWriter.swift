internal import SystemPackage

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
