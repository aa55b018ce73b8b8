internal import CVips

extension DecodedSource {
    /// Upright, in web colours and in memory: a picture for each of `sizes`, of that size but where the source itself is
    /// smaller.
    ///
    /// Each has the pixels that it would have if it were the only one: what is shared is the work, where several are cut
    /// from the same rows. All decoding happens in here, so that whatever fails is the source's fault and not the
    /// encoder's.
    ///
    /// - Parameter keepingProfile: leaves the colours as the embedded profile tells of them, where any encoder could
    ///   write them so.
    func pixels(for sizes: [PixelSize], keepingProfile: Bool = false) throws(ImagingError) -> [Picture] {
        let wanted = sizes.map {
            PixelSize(width: min(facts.width, $0.width), height: min(facts.height, $0.height))
        }
        var distinct: [PixelSize] = []
        for size in wanted where !distinct.contains(size) { distinct.append(size) }
        let pictures = try pictures(of: distinct, keepingProfile: keepingProfile)
        let made = Dictionary(uniqueKeysWithValues: zip(distinct, pictures))
        return wanted.compactMap { made[$0] }
    }

    func pixels(for size: PixelSize) throws(ImagingError) -> Picture {
        guard let picture = try pixels(for: [size]).first else {
            throw ImagingError(code: .transform, message: "There is nothing to show of the picture.")
        }
        return picture
    }

    private func pictures(of sizes: [PixelSize], keepingProfile: Bool) throws(ImagingError) -> [Picture] {
        switch decoder {
        case .registered(let coder, let header):
            let image = try coder.checkedImage(of: bytes, header, limits: limits)
            return try scaled("The \(coder.name)", to: sizes) { () throws(VipsFailure) in
                try image.picture(hasAlpha: header.hasAlpha)
            }
        case .library(.gif, let header): return try ofFirstFrame(header, sizes)
        case .library(.jxl, let header) where jxlAnimation != nil:
            return try ofFirstFrameOfJXL(header, sizes, keepingProfile: keepingProfile)
        case .library(let format, let header):
            do throws(ImagingError) {
                return try ofLibrary(format, header, sizes, keepingProfile: keepingProfile)
            } catch {
                guard isLenient, format == .webp else { throw error }
                return try ofBeginning(header, sizes, keepingProfile: keepingProfile, error)
            }
        }
    }

    /// Of a GIF, by the reader of its animations: libvips' fills up what is missing without a word.
    private func ofFirstFrame(_ header: Picture, _ sizes: [PixelSize]) throws(ImagingError) -> [Picture] {
        // How many others there are doesn't matter.
        var limits = limits
        (limits.frames, limits.animationPixels) = (.max, .max)
        guard let first = try GIFFrameSource(bytes: bytes, limits: limits, isLenient: isLenient).next() else {
            throw ImagingError(code: .badImage, message: "The GIF has no frame.")
        }
        let needsAlpha = header.hasAlpha || !first.pixels.isOpaque
        let frame = try first.pixels.picture()
        return try scaled("The GIF", to: sizes) { () throws(VipsFailure) in
            needsAlpha ? frame : try frame.then { pw_vips_first_bands($0, &$1, 3) }
        }
    }

    private func ofFirstFrameOfJXL(
        _ header: Picture, _ sizes: [PixelSize], keepingProfile: Bool,
    ) throws(ImagingError) -> [Picture] {
        guard let first = try jxlAnimation?.firstFrame(limits) else {
            throw ImagingError(code: .transform, message: "The jxl is no animation.")
        }
        let seen = try scaled("The jxl", to: sizes) { () throws(VipsFailure) in
            let seen = header.hasAlpha ? first : try first.then { pw_vips_first_bands($0, &$1, 3) }
            seen.takeMetadata(of: header)
            return seen
        }
        return try inWebColours(seen, keepingProfile: keepingProfile)
    }

    /// - Parameter whole: a picture that is in memory.
    private func scaled(
        _ name: String, to sizes: [PixelSize], _ whole: () throws(VipsFailure) -> Picture,
    ) throws(ImagingError) -> [Picture] {
        do throws(VipsFailure) {
            let whole = try whole()
            return try sizes.map { (size) throws(VipsFailure) in try whole.resized(to: size).inMemory() }
        } catch {
            throw error.error(.transform, "\(name) could not be scaled")
        }
    }

    private func inWebColours(_ pictures: [Picture], keepingProfile: Bool) throws(ImagingError) -> [Picture] {
        do throws(VipsFailure) {
            return try pictures.map { (picture) throws(VipsFailure) in
                try picture.upright().inWebColours(keepingProfile: keepingProfile).inMemory()
            }
        } catch {
            throw error.error(.transform, "The colours could not be converted")
        }
    }

    /// The rows of a still WebP that can be decoded, the rest transparent.
    private func ofBeginning(
        _ header: Picture, _ sizes: [PixelSize], keepingProfile: Bool, _ error: ImagingError,
    ) throws(ImagingError) -> [Picture] {
        let size = header.storedSize
        // As it came: its decoder waits for what the lengths say is still to come, and shows what it has.
        guard let decoded = lend({ IncrementalWebP($0, width: size.width) }) else { throw error }
        let seen = try scaled("The webp", to: sizes.map { header.isTurnedByAQuarter ? $0.transposed : $0 }) {
            () throws(VipsFailure) in
            let missing = [UInt8](repeating: 0, count: max(0, size.pixels * 4 - decoded.pixels.count))
            let whole = try Picture(rgba: decoded.pixels + missing, size)
            whole.takeMetadata(of: header)
            return whole
        }
        return try inWebColours(seen, keepingProfile: keepingProfile)
    }

    // MARK: - What libvips decodes

    private func ofLibrary(
        _ format: ImageFormat, _ header: Picture, _ sizes: [PixelSize], keepingProfile: Bool,
    ) throws(ImagingError) -> [Picture] {
        var pictures: [PixelSize: Picture] = [:]
        var groups: [(scale: DecodeScale, sizes: [PixelSize])] = []
        for size in sizes {
            let stored = header.isTurnedByAQuarter ? size.transposed : size
            let scale = DecodeScale(from: header.storedSize, to: stored, format: format)
            if let index = groups.firstIndex(where: { $0.scale == scale }) {
                groups[index].sizes.append(stored)
            } else {
                groups.append((scale, [stored]))
            }
        }
        for (scale, stored) in groups {
            let decoded = try decoded(format, header, scale, stored)
            for (size, picture) in try zip(stored, inWebColours(decoded, keepingProfile: keepingProfile)) {
                pictures[header.isTurnedByAQuarter ? size.transposed : size] = picture
            }
        }
        return sizes.compactMap { pictures[$0] }
    }

    /// One decode, and what is cut from it; judged, where libraries only warn.
    private func decoded(
        _ format: ImageFormat, _ header: Picture, _ scale: DecodeScale, _ sizes: [PixelSize],
    ) throws(ImagingError) -> [Picture] {
        let pictures: [Picture]
        let isSuspicious: Bool
        let isDamaged: Bool
        do throws(VipsFailure) {
            let suspicion = JPEGSuspicion(isAlone: isAlone)
            // Pixels are read from the top, once: who wants them a second time opens the file anew.
            let loaded =
                try scale == .full && opening.isFirst()
                ? header : Picture(of: bytes, as: format, scale: scale, isLenient: isLenient)
            pictures = try loaded.resized(toEach: sizes) { () throws(VipsFailure) in
                try Picture(of: bytes, as: format, scale: scale, isLenient: isLenient)
            }
            isSuspicious = format == .jpeg && suspicion.isFounded(after: loaded, of: bytes)
            isDamaged = format == .tiff && suspicion.isOfParts
        } catch {
            throw judged(Self.failure(error, bytes, format))
        }
        if isLenient, [.jpeg, .png].contains(format) {
            // Where nothing has come, libpng leaves zeros, and libjpeg a grey that rounding may change.
            if let picture = pictures.first, try picture.consists(of: format == .png ? 0...0 : 126...130) {
                throw ImagingError(code: .badImage, message: "Nothing can be seen of the \(format.rawValue).")
            }
            return pictures
        }
        if isSuspicious, let objection = JPEGDamage.objection(to: bytes) { throw objection }
        if isDamaged { throw ImagingError(code: .badImage, message: "The tiff has damaged JPEG data.") }
        if format == .tiff, let objection = TIFFDeflate(ByteReader(bytes))?.objection { throw objection }
        return pictures
    }

    /// Whether the picture that was opened for its header may still be decoded. Not for sharing between threads.
    final class Opening {
        private var isTaken = false

        func isFirst() -> Bool {
            defer { isTaken = true }
            return !isTaken
        }
    }
}

extension DecodeScale {
    /// The smallest a decoder should deliver for a picture of `from` pixels that is going to be `to`; nothing else
    /// decides it, so that a rendition is the same whatever else is asked for.
    ///
    /// libjpeg's scaled blocks are sharper than they should be, so at least a factor of two is left for the resize: the
    /// rule of libvips' own thumbnails, and the pixels are the same as theirs. libwebp takes as long to deliver less, so
    /// it does only where all of it would be much to hold; each size is then a decode of its own.
    init(from: PixelSize, to: PixelSize, format: ImageFormat) {
        let shrink = min(Double(from.width) / Double(to.width), Double(from.height) / Double(to.height))
        switch format {
        case .jpeg where shrink >= 16: self = .jpeg(8)
        case .jpeg where shrink >= 8: self = .jpeg(4)
        case .jpeg where shrink >= 4: self = .jpeg(2)
        case .webp where shrink > 1 && from.pixels > Self.largestWebP: self = .webp(1 / shrink)
        default: self = .full
        }
    }

    /// Of pixels; 64 MiB of RGBA.
    private static let largestWebP = 16 << 20
}
