internal import CVips
import ImageFiles

extension Picture {
    /// Eight bits a channel in sRGB, or grey; with its alpha.
    ///
    /// - Parameter keepingProfile: for RGB and grey, only reduces the bits.
    func inWebColours(keepingProfile: Bool = false) throws(VipsFailure) -> Picture {
        let stored = try inWholeNumbers()
        var picture =
            keepingProfile && stored.isEncodable
            ? try stored.withoutBrokenProfile() : try stored.throughItsProfile() ?? stored
        let isConverted = !picture.isEncodable
        if picture.interpretation == VIPS_INTERPRETATION_CMYK { picture = try picture.cmykAsBrowsersShowIt() }
        let wanted =
            picture.bands >= 3
            ? VIPS_INTERPRETATION_sRGB : VIPS_INTERPRETATION_B_W
        if picture.interpretation != wanted || picture.bandFormat != VIPS_FORMAT_UCHAR {
            picture = try picture.then { pw_vips_colourspace($0, &$1, wanted) }
        }
        if picture.bandFormat != VIPS_FORMAT_UCHAR {
            picture = try picture.then { pw_vips_cast($0, &$1, VIPS_FORMAT_UCHAR) }
        }
        // A TIFF may have channels that no encoder knows.
        if picture.bands > 4 { picture = try picture.then { pw_vips_first_bands($0, &$1, 3) } }
        return isConverted ? try picture.withoutProfile() : picture
    }

    /// Whether the written formats can use its profile.
    private var isEncodable: Bool { interpretation != VIPS_INTERPRETATION_CMYK && !isLab }

    /// CIELAB numbers have a fixed meaning, with any profile.
    private var isLab: Bool {
        interpretation == VIPS_INTERPRETATION_LAB || interpretation == VIPS_INTERPRETATION_LABS
    }

    /// Nil if there is no profile, if it is sRGB already, or if libvips cannot use it: browsers show pictures with a
    /// broken profile, so they are not refused.
    private func throughItsProfile() throws(VipsFailure) -> Picture? {
        guard !isLab, let isSRGB = withColourProfile({ ColourProfile($0).isSRGB }), !(isSRGB && bands >= 3) else {
            return nil
        }
        do {
            return try then { pw_vips_icc_to_srgb($0, &$1) }.inMemory()
        } catch {
            return nil
        }
    }

    /// Without a profile the inks are unknown. Like browsers, this multiplies each colour's light by the share that
    /// black leaves.
    private func cmykAsBrowsersShowIt() throws(VipsFailure) -> Picture {
        let light = try then { pw_vips_light_of_inks($0, &$1) }
        guard bands > 4 else { return light }
        let alpha = try then { pw_vips_band($0, &$1, 4) }
            .then { pw_vips_linear($0, &$1, bandFormat == VIPS_FORMAT_USHORT ? 1.0 / 257 : 1, 0) }
        return try light.then { light, result in alpha.lend { pw_vips_join_bands(light, &result, $0) } }
    }

    /// Removes the profile if it does not fit these channels, or if libvips cannot convert even one pixel with it.
    private func withoutBrokenProfile() throws(VipsFailure) -> Picture {
        guard let isWhole = withColourProfile({ ColourProfile($0).isWhole(channels: bands) }) else { return self }
        guard isWhole, canBeConverted else { return try withoutProfile() }
        return self
    }

    private var canBeConverted: Bool {
        do {
            let pixel = try emptyCopy(of: PixelSize(width: 1, height: 1))
            var zeros = [UInt8](repeating: 0, count: bands * 8)
            guard pixel.lend({ vips_image_write_line($0, 0, &zeros) }) == 0 else { throw VipsFailure.take() }
            _ = try pixel.then { pw_vips_icc_to_srgb($0, &$1) }.inMemory()
            return true
        } catch {
            return false
        }
    }

    /// Removes the profile, which describes colours that these pixels no longer have.
    private func withoutProfile() throws(VipsFailure) -> Picture {
        let copy = try then { pw_vips_copy($0, &$1) }
        copy.lend { _ = vips_image_remove($0, VIPS_META_ICC_NAME) }
        return copy
    }
}

// MARK: - Samples that are not bytes

extension Picture {
    /// Whether its samples are colours: some TIFFs store signed numbers, such as heights, or complex numbers.
    var isOfColours: Bool {
        switch bandFormat {
        case VIPS_FORMAT_UCHAR, VIPS_FORMAT_USHORT, VIPS_FORMAT_UINT, VIPS_FORMAT_FLOAT, VIPS_FORMAT_DOUBLE: true
        default: isLab
        }
    }

    /// Eight or sixteen bits a channel, or CIELAB.
    ///
    /// Floating-point samples have the range 0 to 1; if they are more than 2 on average, 0 to 255, as libvips writes
    /// them. A profile says what samples from 0 to 1 mean. Without a profile they are linear light if libvips says so,
    /// which it does for colours.
    private func inWholeNumbers() throws(VipsFailure) -> Picture {
        switch bandFormat {
        case VIPS_FORMAT_UINT: return try inSixteenBits(1 / 65_537)
        case VIPS_FORMAT_FLOAT, VIPS_FORMAT_DOUBLE: return isLab ? self : try fractionsInSixteenBits()
        default: return self
        }
    }

    private func fractionsInSixteenBits() throws(VipsFailure) -> Picture {
        var average = 0.0
        guard lend({ pw_vips_average($0, &average) }) == 0 else { throw VipsFailure.take() }
        if average > 2, average.isFinite { return try inSixteenBits(257) }
        let isLinear = interpretation == VIPS_INTERPRETATION_scRGB && withColourProfile { _ in true } == nil
        guard isLinear, bands >= 3 else { return try inSixteenBits(65_535) }
        let light = try bands == 3 ? self : then { pw_vips_first_bands($0, &$1, 3) }
        let colours = try light.then { pw_vips_colourspace($0, &$1, VIPS_INTERPRETATION_RGB16) }
        guard bands == 4 else { return colours }
        let alpha = try then { pw_vips_band($0, &$1, 3) }.inSixteenBits(65_535)
        return try colours.then { colours, result in alpha.lend { pw_vips_join_bands(colours, &result, $0) } }
    }

    private func inSixteenBits(_ factor: Double) throws(VipsFailure) -> Picture {
        let interpretation = bands < 3 ? VIPS_INTERPRETATION_GREY16 : VIPS_INTERPRETATION_RGB16
        return try then { pw_vips_to_sixteen_bits($0, &$1, factor, interpretation) }
    }
}
