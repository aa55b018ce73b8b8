internal import CVips
internal import Core
import ImageFiles
import Variants

extension Picture {
    /// Runs the recipe and keeps the pixels, so that decoding happens here and not later.
    func inMemory() throws(VipsFailure) -> Picture {
        try Picture { result in
            result = lend { vips_image_copy_memory($0) }
            return result == nil ? -1 : 0
        }
    }

    /// Scaled to exactly `size` with Lanczos 3. Colours are weighted by their alpha; otherwise transparent pixels would
    /// bleed into visible ones.
    ///
    /// The built-in resampler shrinks pictures of eight bits and up to four channels. libvips does the rest: enlarging,
    /// and more bits or channels.
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

    /// Turned by its orientation, once: the tag is removed.
    func upright() throws(VipsFailure) -> Picture {
        guard orientation > 1 else { return self }
        return try then { pw_vips_autorot($0, &$1) }.inMemory()
    }

    /// Cropped or padded to `placement.output`.
    ///
    /// - Parameters:
    ///   - position: the part that stays, or the place in the free space.
    ///   - transparent: whether to pad with transparency, which adds an alpha if there is none; otherwise with
    ///     `background`.
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

    /// Whether all samples, of any number of bits, consist of these bytes only.
    func consists(of bytes: ClosedRange<UInt8>) throws(Failure) -> Bool {
        do throws(VipsFailure) {
            let memory = try inMemory()
            let count = memory.storedSize.pixels * memory.bands * Int(vips_format_sizeof(memory.bandFormat))
            guard let start = memory.lend({ vips_image_get_data($0) }) else { throw VipsFailure.take() }
            defer { withExtendedLifetime(memory) {} }
            return UnsafeRawBufferPointer(start: start, count: count).allSatisfy(bytes.contains)
        } catch {
            throw error.error(.transform, "The pixels can't be read")
        }
    }
}

extension Position {
    private var looksAtPixels: Bool { self == .attention || self == .entropy }

    /// Fixes the position in this picture for all that follow it; a window that was searched in each of them would
    /// jump.
    ///
    /// - Parameter picture: of the size from which it is cropped.
    /// - Returns: a point in the middle of the window, if the position depends on pixels.
    func fixed(on picture: Picture, _ placement: Placement) throws(VipsFailure) -> Position {
        guard looksAtPixels, placement.isCropped else { return self }
        let window = try picture.cropped(to: placement, at: self)
        // libvips returns the offset of the picture in the cropped part.
        let (left, top) = window.lend { (-Int(vips_image_get_xoffset($0)), -Int(vips_image_get_yoffset($0))) }
        return .focus(
            x: Self.point(left, of: placement.output.width, in: placement.scaled.width),
            y: Self.point(top, of: placement.output.height, in: placement.scaled.height))
    }

    /// Half a pixel after the middle, so that rounding down gives `start` again.
    private static func point(_ start: Int, of length: Int, in whole: Int) -> Double {
        (Double(start) + Double(length) / 2 + 0.5) / Double(whole)
    }
}

extension Picture {
    /// Without the border that is like the top left pixel. A picture that is all border stays as it is.
    ///
    /// libvips' own search ignores details of one pixel as noise, and needs three pixels a side.
    func trimmed(threshold: Double) throws(VipsFailure) -> Picture {
        guard let area = try content(threshold: threshold) else { return self }
        return try then {
            pw_vips_crop(
                $0, &$1, CInt(area.columns.lowerBound), CInt(area.rows.lowerBound), CInt(area.columns.count),
                CInt(area.rows.count))
        }
    }

    /// The part that differs from the top left pixel by more than `threshold`, in alpha or in a colour. Colours are
    /// weighted by their alpha, so fully transparent pixels have none.
    private func content(threshold: Double) throws(VipsFailure) -> Content? {
        let weighed = hasAlpha ? try then { pw_vips_premultiply($0, &$1) }.inBytes() : self
        let (size, bands) = (storedSize, bands)
        return try weighed.withPixels { Content(of: $0, size, bands: bands, threshold: Int(threshold)) }
    }
}

/// The smallest rectangle with all pixels that differ from the first.
private struct Content {
    let rows: Range<Int>
    let columns: Range<Int>

    /// Nil if all are alike.
    ///
    /// - Parameter threshold: in whole steps; a difference up to it does not count.
    init?(of pixels: UnsafeRawBufferPointer, _ size: PixelSize, bands: Int, threshold: Int) {
        func isUnlike(_ x: Int, _ y: Int) -> Bool {
            let place = (y * size.width + x) * bands
            return (0..<bands).contains { abs(Int(pixels[place + $0]) - Int(pixels[$0])) > threshold }
        }
        func hasContent(_ y: Int) -> Bool { (0..<size.width).contains { isUnlike($0, y) } }
        guard let top = (0..<size.height).first(where: hasContent),
            let bottom = (top..<size.height).last(where: hasContent)
        else { return nil }
        var (left, right) = (size.width, 0)
        for y in top...bottom {
            if let first = (0..<left).first(where: { isUnlike($0, y) }) { left = first }
            if let last = (right..<size.width).last(where: { isUnlike($0, y) }) { right = last + 1 }
        }
        rows = top..<(bottom + 1)
        columns = left..<right
    }
}
