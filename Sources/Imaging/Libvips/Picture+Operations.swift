internal import CVips
internal import Core
import Variants

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
    func consists(of bytes: ClosedRange<UInt8>) throws(Failure) -> Bool {
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

extension Position {
    private var looksAtPixels: Bool { self == .attention || self == .entropy }

    /// Found once, for all pictures that follow this one: a window that looked at each of them would jump.
    ///
    /// - Parameter picture: of the size it is cropped from.
    /// - Returns: a point in the middle of the window where this position looks at pixels.
    func fixed(on picture: Picture, _ placement: Placement) throws(VipsFailure) -> Position {
        guard looksAtPixels, placement.isCropped else { return self }
        let window = try picture.cropped(to: placement, at: self)
        // libvips says where the picture would begin in what is left of it.
        let (left, top) = window.lend { (-Int(vips_image_get_xoffset($0)), -Int(vips_image_get_yoffset($0))) }
        return .focus(
            x: Self.point(left, of: placement.output.width, in: placement.scaled.width),
            y: Self.point(top, of: placement.output.height, in: placement.scaled.height))
    }

    /// Half a pixel further than the middle, so that rounding down comes back to `start`.
    private static func point(_ start: Int, of length: Int, in whole: Int) -> Double {
        (Double(start) + Double(length) / 2 + 0.5) / Double(whole)
    }
}

extension Picture {
    /// Without the border that is like the top left pixel. A picture that is nothing but border stays as it is.
    ///
    /// libvips' own search takes what is one pixel wide for noise, and needs three pixels a side.
    func trimmed(threshold: Double) throws(VipsFailure) -> Picture {
        guard let area = try content(threshold: threshold) else { return self }
        return try then {
            pw_vips_crop(
                $0, &$1, CInt(area.columns.lowerBound), CInt(area.rows.lowerBound), CInt(area.columns.count),
                CInt(area.rows.count))
        }
    }

    /// What differs from the top left pixel by more than `threshold`, in alpha or in a colour. Colours are weighed by their
    /// alpha: what can't be seen has none.
    private func content(threshold: Double) throws(VipsFailure) -> Content? {
        let weighed = hasAlpha ? try then { pw_vips_premultiply($0, &$1) }.inBytes() : self
        let (size, bands) = (storedSize, bands)
        return try weighed.withPixels { Content(of: $0, size, bands: bands, threshold: Int(threshold)) }
    }
}

/// The smallest rectangle that has all pixels which are unlike the first.
private struct Content {
    let rows: Range<Int>
    let columns: Range<Int>

    /// Nil where all are alike.
    ///
    /// - Parameter threshold: of whole steps; a difference that is no more is none.
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
