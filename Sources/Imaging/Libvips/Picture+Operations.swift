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

    /// Eight bits a channel in sRGB, or grey; with the alpha it has.
    func inWebColours() throws(VipsFailure) -> Picture {
        var picture = try throughItsProfile() ?? self
        let wanted =
            picture.interpretation == VIPS_INTERPRETATION_CMYK || picture.bands >= 3
            ? VIPS_INTERPRETATION_sRGB : VIPS_INTERPRETATION_B_W
        if picture.interpretation != wanted || picture.bandFormat != VIPS_FORMAT_UCHAR {
            picture = try picture.then { pw_vips_colourspace($0, &$1, wanted) }
        }
        if picture.bandFormat != VIPS_FORMAT_UCHAR {
            picture = try picture.then { pw_vips_cast($0, &$1, VIPS_FORMAT_UCHAR) }
        }
        // A TIFF may have channels no encoder knows.
        return picture.bands > 4 ? try picture.then { pw_vips_first_bands($0, &$1, 3) } : picture
    }

    /// Nil where there is no profile, where it is sRGB already, and where libvips can't use it: a broken profile is no
    /// reason to refuse a picture that every browser shows.
    private func throughItsProfile() throws(VipsFailure) -> Picture? {
        guard let isSRGB = withColourProfile({ ColourProfile($0).isSRGB }), !(isSRGB && bands >= 3) else { return nil }
        do {
            return try then { pw_vips_icc_to_srgb($0, &$1) }.inMemory()
        } catch {
            return nil
        }
    }

    /// Cropped or padded around the centre to `placement.output`.
    ///
    /// - Parameter transparent: pad with nothing, for which an alpha is added where there is none; else with white.
    func placed(_ placement: Placement, transparent: Bool) throws(VipsFailure) -> Picture {
        let output = placement.output
        let left = CInt((output.width - placement.scaled.width) / 2)
        let top = CInt((output.height - placement.scaled.height) / 2)
        let width = CInt(output.width)
        let height = CInt(output.height)
        if placement.isCropped { return try then { pw_vips_crop($0, &$1, -left, -top, width, height) } }
        guard placement.isPadded else { return self }
        let canvas = transparent && !hasAlpha ? try then { pw_vips_add_alpha($0, &$1) } : self
        return try canvas.then { pw_vips_pad($0, &$1, left, top, width, height, transparent ? 0 : 1) }
    }

    func flattenedOnWhite() throws(VipsFailure) -> Picture {
        hasAlpha ? try then { pw_vips_flatten_on_white($0, &$1) } : self
    }
}
