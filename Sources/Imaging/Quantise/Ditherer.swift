import ImageFiles

/// Shows pixels with the colours of a palette, and passes each pixel's error on to its neighbours (Floyd and
/// Steinberg).
struct Ditherer {
    private let nearest: NearestColours
    private let isSpreading: Bool
    /// Errors for the row below, red, green and blue of each pixel, in sixteenths; with one more pixel at both ends.
    private var below: [Int]
    private var current: [Int]

    /// - Parameters:
    ///   - nearest: the palette.
    ///   - width: of a row in pixels.
    init(_ nearest: NearestColours, width: Int) {
        self.nearest = nearest
        isSpreading = nearest.colours.count >= 31
        below = [Int](repeating: 0, count: (width + 2) * 3)
        current = below
    }

    /// Rows come from top to bottom.
    ///
    /// - Parameters:
    ///   - row: opaque pixels, or transparent black ones, which become `transparent` and pass on no error.
    ///   - indices: one for each pixel of the row.
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
            let index = nearest.index(red, green, blue)
            indices[x] = UInt8(index)
            let colour = nearest.colours[index]
            let lost = (kept(red - colour.red), kept(green - colour.green), kept(blue - colour.blue))
            spread(lost.0, at: place)
            spread(lost.1, at: place + 1)
            spread(lost.2, at: place + 2)
            ahead = (lost.0 * 7, lost.1 * 7, lost.2 * 7)
        }
    }

    private static func corrected(_ value: Int, _ sixteenths: Int) -> Int { min(max(value + sixteenths / 16, 0), 255) }

    /// The part of an error that is passed on. Dithering breaks up bands, but adds noise that changes with each frame.
    /// With three eighths films are nearest to their original, and as small as without dithering. With fewer than 32
    /// colours, transparency included, even three eighths show only as dots, and files grow by a tenth.
    private func kept(_ lost: Int) -> Int { isSpreading ? lost * 3 / 8 : 0 }

    private mutating func spread(_ lost: Int, at place: Int) {
        below[place - 3] += lost * 3
        below[place] += lost * 5
        below[place + 3] += lost
    }
}
