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
        var best: (format: VariantSpec.Output, file: EncodedFile)?
        var failure: VipsFailure?
        for format in formats {
            do throws(VipsFailure) {
                let file = try encoded(picture, format)
                if file.count < best?.file.count ?? .max { best = (format, file) }
            } catch {
                failure = error
            }
        }
        guard let best else { throw failure ?? VipsFailure(text: "there is no format to choose from") }
        try best.file.write(to: descriptor)
        return best.format
    }

    private func encoding(_ format: VariantSpec.Output) -> Encoding {
        Encoding(format, quality: spec.quality, spec.options)
    }

    private func prepared(_ picture: Picture, _ format: VariantSpec.Output) throws(VipsFailure) -> Picture {
        format.hasAlpha ? picture : try picture.flattened(on: spec.options.background)
    }

    private func encoded(_ picture: Picture, _ format: VariantSpec.Output) throws(VipsFailure) -> EncodedFile {
        let picture = try prepared(picture, format).inMemory()
        let file = try picture.encoded(encoding(format))
        guard let most = spec.options.whole(.maxBytes), file.count > most else { return file }
        return try squeezed(picture, encoding(format), into: most)
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
