/// Shows pixels with the colours of a palette, what is lost in one passed on to its neighbours (Floyd and Steinberg).
struct Ditherer {
    private let colours: [Pixel]
    /// The nearest colour of each cell of 64 steps a channel, found when first asked for; −1 until then.
    private var nearest = [Int16](repeating: -1, count: 1 << 18)
    /// Errors passed on to the row below, red, green and blue of each pixel, in sixteenths; one pixel more on both ends.
    private var below: [Int]
    private var current: [Int]

    /// - Parameters:
    ///   - colours: 1 to 256.
    ///   - width: of a row in pixels.
    init(_ colours: [Pixel], width: Int) {
        self.colours = colours
        below = [Int](repeating: 0, count: (width + 2) * 3)
        current = below
    }

    /// Rows come from top to bottom.
    ///
    /// - Parameters:
    ///   - row: opaque pixels, or transparent black, which becomes `transparent` and passes nothing on.
    ///   - indices: as many as the row has pixels.
    mutating func dither(
        _ row: Slice<UnsafeMutableBufferPointer<Pixel>>, into indices: UnsafeMutableBufferPointer<UInt8>,
        transparent: UInt8,
    ) {
        let start = row.startIndex
        let pixels = row.base
        swap(&current, &below)
        below.withUnsafeMutableBufferPointer { $0.update(repeating: 0) }
        var ahead = (0, 0, 0)
        for x in 0..<indices.count {
            let pixel = pixels[start + x]
            guard pixel != Pixel() else {
                indices[x] = transparent
                ahead = (0, 0, 0)
                continue
            }
            let place = (x + 1) * 3
            let red = Self.corrected(pixel.red, ahead.0 + current[place])
            let green = Self.corrected(pixel.green, ahead.1 + current[place + 1])
            let blue = Self.corrected(pixel.blue, ahead.2 + current[place + 2])
            let index = index(red, green, blue)
            indices[x] = UInt8(index)
            let colour = colours[index]
            let lost = (kept(red - colour.red), kept(green - colour.green), kept(blue - colour.blue))
            spread(lost.0, at: place)
            spread(lost.1, at: place + 1)
            spread(lost.2, at: place + 2)
            ahead = (lost.0 * 7, lost.1 * 7, lost.2 * 7)
        }
    }

    private static func corrected(_ value: Int, _ sixteenths: Int) -> Int { min(max(value + sixteenths / 16, 0), 255) }

    /// A quarter is let go: passing on all of it makes more noise than it saves colour.
    private func kept(_ lost: Int) -> Int { lost * 3 / 4 }

    private mutating func spread(_ lost: Int, at place: Int) {
        below[place - 3] += lost * 3
        below[place] += lost * 5
        below[place + 3] += lost
    }

    private mutating func index(_ red: Int, _ green: Int, _ blue: Int) -> Int {
        let cell = (red & 0xFC) << 10 | (green & 0xFC) << 4 | blue >> 2
        if nearest[cell] >= 0 { return Int(nearest[cell]) }
        var best = (index: 0, distance: Int.max)
        for (index, colour) in colours.enumerated() {
            let distance = Self.distance(red, green, blue, colour)
            if distance < best.distance { best = (index, distance) }
        }
        nearest[cell] = Int16(best.index)
        return best.index
    }

    /// Squared, with the eye's weights for the three, roughly.
    private static func distance(_ red: Int, _ green: Int, _ blue: Int, _ colour: Pixel) -> Int {
        let (r, g, b) = (red - colour.red, green - colour.green, blue - colour.blue)
        return 3 * r * r + 6 * g * g + b * b
    }
}
