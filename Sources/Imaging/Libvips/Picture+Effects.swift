internal import CVips
import ImageFiles
import Variants

extension Colour {
    /// The colour's values for an image of 1 to 4 channels, in libvips' order. Grey images get its lightness (ITU-R
    /// BT.709).
    func channels(_ count: Int) -> [Double] {
        let colour = [Double(red), Double(green), Double(blue)]
        let grey = 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2]
        return (count < 3 ? [grey] : colour) + [Double(alpha)]
    }

    var isGrey: Bool { red == green && green == blue }
}

// Effects on pixels that are upright, in web colours and in memory; their results are so too.

extension Picture {
    /// Three channels and an alpha.
    func asRGBA() throws(VipsFailure) -> Picture {
        let coloured = bands < 3 ? try then { pw_vips_colourspace($0, &$1, VIPS_INTERPRETATION_sRGB) } : self
        return coloured.hasAlpha ? coloured : try coloured.then { pw_vips_add_alpha($0, &$1) }
    }

    /// Adds the channels that `colour` needs: an alpha if it is transparent, colours if it is not grey.
    func ready(for colour: Colour) throws(VipsFailure) -> Picture {
        if !colour.isGrey, bands < 3 || colour.alpha < 255 { return try asRGBA() }
        return colour.alpha < 255 && !hasAlpha ? try then { pw_vips_add_alpha($0, &$1) } : self
    }

    /// Runs `body` on the colours alone; the alpha stays as it is.
    func onColours(_ body: (Picture) throws(VipsFailure) -> Picture) throws(VipsFailure) -> Picture {
        guard hasAlpha else { return try body(self).inBytes() }
        let colours = CInt(bands - 1)
        let changed = try body(then { pw_vips_first_bands($0, &$1, colours) }).inBytes()
        let alpha = try then { pw_vips_band($0, &$1, colours) }
        return try changed.then { changed, result in alpha.lend { pw_vips_join_bands(changed, &result, $0) } }
    }

    /// Runs `body` on colours weighted by their alpha, for effects that mix neighbours. They are floating point, since
    /// integers would lose the colours of nearly transparent pixels.
    func premultiplied(_ body: (Picture) throws(VipsFailure) -> Picture) throws(VipsFailure) -> Picture {
        guard hasAlpha else { return try body(self) }
        return try body(then { pw_vips_premultiply($0, &$1) })
            .then { pw_vips_unpremultiply($0, &$1) }.inBytes()
    }

    /// Rounds; a cast would truncate.
    func inBytes() throws(VipsFailure) -> Picture {
        bandFormat == VIPS_FORMAT_UCHAR ? self : try then { pw_vips_linear($0, &$1, 1, 0.5) }
    }

    /// - Parameters: in this picture's pixels; parts outside of it are cut off.
    /// - Throws: if nothing is left.
    func cropped(left: Int, top: Int, width: Int, height: Int) throws(VipsFailure) -> Picture {
        let size = storedSize
        let right = min(size.width, left + width)
        let bottom = min(size.height, top + height)
        guard left < right, top < bottom else {
            throw VipsFailure(text: "the crop lies outside of the picture's \(size.width)×\(size.height) pixels")
        }
        return try then {
            pw_vips_crop($0, &$1, CInt(left), CInt(top), CInt(right - left), CInt(bottom - top))
        }
    }

    /// Clockwise.
    ///
    /// - Parameter grows: whether the canvas grows; if not, corners outside of it are cut off.
    func rotated(by degrees: Double, grows: Bool, background: Colour) throws(VipsFailure) -> Picture {
        let size = storedSize
        let turns = (degrees / 90).truncatingRemainder(dividingBy: 4)
        if turns == turns.rounded() {
            let angle = VipsAngle(rawValue: UInt32((Int(turns) + 4) % 4))
            let turned = angle == VIPS_ANGLE_D0 ? self : try then { pw_vips_rot($0, &$1, angle) }.inMemory()
            return grows ? turned : try turned.clipped(to: size, background)
        }
        let canvas = try ready(for: background)
        // The background is weighted by its alpha, like the picture.
        let weight = canvas.hasAlpha ? Double(background.alpha) / 255 : 1
        let channels = background.channels(canvas.bands)
        let colours = canvas.hasAlpha ? channels.count - 1 : channels.count
        let colour = channels.enumerated().map { $0 < colours ? $1 * weight : $1 }
        let turned = try canvas.premultiplied { picture throws(VipsFailure) in
            try picture.then { pw_vips_rotate($0, &$1, degrees, colour) }
        }
        return try grows ? turned.inMemory() : turned.inMemory().clipped(to: size, background)
    }

    /// The middle part, padded where the picture is smaller.
    func clipped(to size: PixelSize, _ background: Colour) throws(VipsFailure) -> Picture {
        guard storedSize != size else { return self }
        let canvas = try ready(for: background)
        let from = canvas.storedSize
        let colour = background.channels(canvas.bands)
        let left = CInt((size.width - from.width) / 2)
        let top = CInt((size.height - from.height) / 2)
        return try canvas.then {
            pw_vips_pad($0, &$1, left, top, CInt(size.width), CInt(size.height), colour)
        }
    }

    func flipped(_ direction: String) throws(VipsFailure) -> Picture {
        switch direction {
        case "vertical": try then { pw_vips_flip($0, &$1, VIPS_DIRECTION_VERTICAL) }
        case "both": try then { pw_vips_rot($0, &$1, VIPS_ANGLE_D180) }
        default: try then { pw_vips_flip($0, &$1, VIPS_DIRECTION_HORIZONTAL) }
        }
    }

    func padded(top: Int, right: Int, bottom: Int, left: Int, _ colour: Colour) throws(VipsFailure) -> Picture {
        let canvas = try ready(for: colour)
        let size = canvas.storedSize
        let fill = colour.channels(canvas.bands)
        return try canvas.then {
            pw_vips_pad(
                $0, &$1, CInt(left), CInt(top), CInt(size.width + left + right), CInt(size.height + top + bottom), fill)
        }
    }

    func flattened(on colour: Colour) throws(VipsFailure) -> Picture {
        guard hasAlpha else { return self }
        let canvas = !colour.isGrey && bands < 3 ? try asRGBA() : self
        let fill = colour.channels(canvas.bands - 1)
        return try canvas.then { pw_vips_flatten($0, &$1, fill) }.inBytes()
    }

    func blurred(sigma: Double) throws(VipsFailure) -> Picture {
        try premultiplied { picture throws(VipsFailure) in try picture.then { pw_vips_blur($0, &$1, sigma) } }.inBytes()
    }

    func sharpened(sigma: Double, amount: Double) throws(VipsFailure) -> Picture {
        try onColours { colours throws(VipsFailure) in try colours.then { pw_vips_sharpen($0, &$1, sigma, amount) } }
    }

    func inGreyscale() throws(VipsFailure) -> Picture {
        try then { pw_vips_colourspace($0, &$1, VIPS_INTERPRETATION_B_W) }.inBytes()
    }

    func inverted() throws(VipsFailure) -> Picture {
        try onColours { colours throws(VipsFailure) in try colours.then { pw_vips_invert($0, &$1) } }
    }

    /// Every channel times `factor`, plus `offset`.
    func scaledColours(by factor: Double, plus offset: Double = 0) throws(VipsFailure) -> Picture {
        try onColours { colours throws(VipsFailure) in
            try colours.then { pw_vips_linear($0, &$1, factor, offset + 0.5) }
        }
    }

    /// 0 is grey, 1 changes nothing. Weights of ITU-R BT.709.
    func saturated(by factor: Double) throws(VipsFailure) -> Picture {
        guard bands >= 3 else { return self }
        let rest = 1 - factor
        let grey: [Double] = [0.2126 * rest, 0.7152 * rest, 0.0722 * rest]
        let matrix = (0..<9).map { place -> Double in
            let own: Double = place % 4 == 0 ? factor : 0
            return grey[place % 3] + own
        }
        return try onColours { colours throws(VipsFailure) in try colours.then { pw_vips_recomb($0, &$1, matrix) } }
    }

    func composite(_ over: Picture, at place: (x: Int, y: Int)) throws(VipsFailure) -> Picture {
        // In bytes, libvips would truncate instead of rounding.
        let over = try over.then { pw_vips_cast($0, &$1, VIPS_FORMAT_FLOAT) }
        return try then { pw_vips_cast($0, &$1, VIPS_FORMAT_FLOAT) }.then { base, result in
            over.lend { pw_vips_composite(base, &result, $0, CInt(place.x), CInt(place.y)) }
        }.inBytes().inMemory()
    }

    /// Multiplies the alpha by `opacity`. Only for RGBA.
    func faded(to opacity: Double) throws(VipsFailure) -> Picture {
        let alpha = try then { pw_vips_band($0, &$1, 3) }.then { pw_vips_linear($0, &$1, opacity, 0.5) }
        return try then { pw_vips_first_bands($0, &$1, 3) }.then { colours, result in
            alpha.lend { pw_vips_join_bands(colours, &result, $0) }
        }
    }
}
