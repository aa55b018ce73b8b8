internal import CVips
internal import Core
import ImageFiles

extension DecodedSource {
    /// A picture for each of `sizes`, upright, in web colours and in memory. Each has its size, or the source's if that
    /// is smaller.
    ///
    /// Each has the same pixels as if it were the only one; only the work is shared, if several are made from the same
    /// rows. All decoding happens here, so that every failure here is the source's and not the encoder's.
    ///
    /// - Parameter keepingProfile: keeps the colours of the embedded profile, unless no encoder could write them.
    func pixels(for sizes: [PixelSize], keepingProfile: Bool = false) throws(Failure) -> [Picture] {
        let wanted = sizes.map {
            PixelSize(width: min(facts.width, $0.width), height: min(facts.height, $0.height))
        }
        var distinct: [PixelSize] = []
        for size in wanted where !distinct.contains(size) { distinct.append(size) }
        let pictures = try pictures(of: distinct, keepingProfile: keepingProfile)
        let made = Dictionary(uniqueKeysWithValues: zip(distinct, pictures))
        return wanted.compactMap { made[$0] }
    }

    func pixels(for size: PixelSize) throws(Failure) -> Picture {
        guard let picture = try pixels(for: [size]).first else {
            throw Failure(.transform, "The picture has no pixels to show.")
        }
        return picture
    }

    private func pictures(of sizes: [PixelSize], keepingProfile: Bool) throws(Failure) -> [Picture] {
        switch reading {
        case .coder(let coder, let header):
            let image = try coder.checkedImage(of: bytes, header, limits: limits)
            return try scaled("The \(coder.name)", to: sizes) { () throws(VipsFailure) in
                try image.picture(hasAlpha: header.hasAlpha)
            }
        case .library(let format, let header):
            let file = OpenedFrames(
                bytes: bytes, header: header, count: frameCount, limits: limits, isLenient: isLenient)
            if let first = try firstFrame(format, file) {
                let pictures = try scaled("The \(format.name)", to: sizes) { () throws(VipsFailure) in first }
                return try inWebColours(pictures, keepingProfile: keepingProfile)
            }
            do throws(Failure) {
                return try ofLibrary(format, header, sizes, keepingProfile: keepingProfile)
            } catch {
                guard isLenient, let beginning = try beginning(format, header) else { throw error }
                let stored = sizes.map { header.isTurnedByAQuarter ? $0.transposed : $0 }
                let pictures = try scaled("The \(format.name)", to: stored) { () throws(VipsFailure) in beginning }
                return try inWebColours(pictures, keepingProfile: keepingProfile)
            }
        }
    }

    private func firstFrame(_ format: any FormatDefinition, _ file: OpenedFrames) throws(Failure) -> Picture? {
        do throws(Failure) { return try format.firstFrame(file) } catch { throw blamingMemory(error) }
    }

    /// The visible part of a damaged file that its library refuses.
    private func beginning(_ format: any FormatDefinition, _ header: Picture) throws(Failure) -> Picture? {
        do throws(VipsFailure) {
            guard
                let picture = try lend({ bytes in
                    Result { () throws(VipsFailure) in try format.beginning(bytes, header.storedSize) }
                }).get()
            else { return nil }
            picture.takeMetadata(of: header)
            return picture
        } catch {
            throw error.error(.transform, "The \(format.name) could not be scaled")
        }
    }

    /// - Parameter whole: a picture in memory.
    private func scaled(
        _ name: String, to sizes: [PixelSize], _ whole: () throws(VipsFailure) -> Picture,
    ) throws(Failure) -> [Picture] {
        do throws(VipsFailure) {
            let whole = try whole()
            return try sizes.map { (size) throws(VipsFailure) in try whole.resized(to: size).inMemory() }
        } catch {
            throw error.error(.transform, "\(name) could not be scaled")
        }
    }

    private func inWebColours(_ pictures: [Picture], keepingProfile: Bool) throws(Failure) -> [Picture] {
        do throws(VipsFailure) {
            return try pictures.map { (picture) throws(VipsFailure) in
                try picture.upright().inWebColours(keepingProfile: keepingProfile).inMemory()
            }
        } catch {
            throw error.error(.transform, "The colours could not be converted")
        }
    }

    // MARK: - Decoding by libvips

    private func ofLibrary(
        _ format: any FormatDefinition, _ header: Picture, _ sizes: [PixelSize], keepingProfile: Bool,
    ) throws(Failure) -> [Picture] {
        var pictures: [PixelSize: Picture] = [:]
        var groups: [(scale: DecodeScale, sizes: [PixelSize])] = []
        for size in sizes {
            let stored = header.isTurnedByAQuarter ? size.transposed : size
            let scale = format.scale(from: header.storedSize, to: stored)
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

    /// One decode and the pictures made from it. Checks for damage of which libraries only warn.
    private func decoded(
        _ format: any FormatDefinition, _ header: Picture, _ scale: DecodeScale, _ sizes: [PixelSize],
    ) throws(Failure) -> [Picture] {
        let pictures: [Picture]
        let damage: Failure?
        do throws(VipsFailure) {
            let watch = DecodeWatch(isAlone: isAlone)
            // Pixels can be read once, from the top; a second decode opens the file again.
            let loaded =
                try scale == .full && opening.take()
                ? header : Picture(of: bytes, as: format, scale: scale, isLenient: isLenient)
            pictures = try loaded.resized(toEach: sizes) { () throws(VipsFailure) in
                try Picture(of: bytes, as: format, scale: scale, isLenient: isLenient)
            }
            let isMended = isLenient && format.emptySamples != nil
            damage = isMended ? nil : format.damage(after: watch, loaded, bytes)
        } catch {
            throw blamingMemory(format.error(error, bytes))
        }
        if let damage { throw damage }
        if isLenient, let empty = format.emptySamples, let picture = pictures.first, try picture.consists(of: empty) {
            throw Failure(.badImage, "All pixels of the \(format.name) are transparent.")
        }
        return pictures
    }

    /// Whether the picture that was opened for its header can still be decoded. Not for sharing between threads.
    final class Opening {
        private var isTaken = false

        func take() -> Bool {
            defer { isTaken = true }
            return !isTaken
        }
    }
}

extension DecodedSource {
    /// The facts, with those computed from decoded pixels.
    ///
    /// - Parameter base: upright, in web colours and in memory, of any size.
    func facts(with base: Picture) throws(Failure) -> ImageFacts {
        var facts = facts
        do throws(VipsFailure) {
            facts.placeholders = try base.placeholders(width: facts.width, height: facts.height)
        } catch {
            throw error.error(.transform, "The placeholders could not be computed")
        }
        return facts
    }
}
