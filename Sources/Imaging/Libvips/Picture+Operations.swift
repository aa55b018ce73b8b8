internal import CVips

extension Picture {
    /// Runs the recipe and keeps the pixels, so that decoding happens here and nowhere later.
    func inMemory() throws(VipsFailure) -> Picture {
        try Picture { result in
            result = lend { vips_image_copy_memory($0) }
            return result == nil ? -1 : 0
        }
    }

    /// Scaled to exactly `size` with Lanczos 3. Colours are weighed by their alpha, or transparent pixels would bleed
    /// into the visible ones.
    ///
    /// Ours shrinks what web pictures are; libvips does the rest: what grows, and what has more bits or channels.
    func resized(to size: PixelSize) throws(VipsFailure) -> Picture {
        guard storedSize != size else { return self }
        return canBeShrunk(to: size) ? try shrunk(to: size) : try resizedByLibvips(to: size)
    }

    func resizedByLibvips(to size: PixelSize) throws(VipsFailure) -> Picture {
        let from = storedSize
        let horizontal = Double(size.width) / Double(from.width)
        let vertical = Double(size.height) / Double(from.height)
        guard hasAlpha else { return try then { pw_vips_resize($0, &$1, horizontal, vertical) } }
        let format = bandFormat
        return try then { pw_vips_premultiply($0, &$1) }
            .then { pw_vips_cast($0, &$1, format) }
            .then { pw_vips_resize($0, &$1, horizontal, vertical) }
            .then { pw_vips_unpremultiply($0, &$1) }
            .then { pw_vips_cast($0, &$1, format) }
    }

    /// Turned as its orientation says, once: the tag is gone afterwards.
    func upright() throws(VipsFailure) -> Picture {
        guard orientation > 1 else { return self }
        return try then { pw_vips_autorot($0, &$1) }.inMemory()
    }

    /// Cropped or padded to `placement.output`.
    ///
    /// - Parameters:
    ///   - position: which part stays, or where in the room it stands.
    ///   - transparent: pad with nothing, for which an alpha is added where there is none; else with `background`.
    func placed(
        _ placement: Placement, at position: Position, transparent: Bool, background: Colour,
    ) throws(VipsFailure) -> Picture {
        if placement.isCropped { return try cropped(to: placement, at: position) }
        guard placement.isPadded else { return self }
        let room = placement.output
        let size = storedSize
        let (left, top) = position.place(of: size, in: room)
        return try padded(
            top: top, right: room.width - size.width - left, bottom: room.height - size.height - top, left: left,
            transparent ? .transparent : background)
    }

    func cropped(to placement: Placement, at position: Position) throws(VipsFailure) -> Picture {
        let width = CInt(placement.output.width)
        let height = CInt(placement.output.height)
        switch position {
        case .attention: return try then { pw_vips_smartcrop($0, &$1, width, height, VIPS_INTERESTING_ATTENTION) }
        case .entropy: return try then { pw_vips_smartcrop($0, &$1, width, height, VIPS_INTERESTING_ENTROPY) }
        case .gravity, .focus:
            let (left, top) = position.place(of: placement.scaled, in: placement.output)
            return try then { pw_vips_crop($0, &$1, CInt(-left), CInt(-top), width, height) }
        }
    }

    /// Whether all samples, of however many bits, are made of such bytes and no others.
    func consists(of bytes: ClosedRange<UInt8>) throws(ImagingError) -> Bool {
        do throws(VipsFailure) {
            let memory = try inMemory()
            let count = memory.storedSize.pixels * memory.bands * Int(vips_format_sizeof(memory.bandFormat))
            guard let start = memory.lend({ vips_image_get_data($0) }) else { throw VipsFailure.take() }
            defer { withExtendedLifetime(memory) {} }
            return UnsafeRawBufferPointer(start: start, count: count).allSatisfy(bytes.contains)
        } catch {
            throw error.error(.transform, "The pixels can't be looked at")
        }
    }
}
