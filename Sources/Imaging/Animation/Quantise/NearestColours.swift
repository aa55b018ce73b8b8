/// The colours of a palette, and which of them is the nearest to any other.
///
/// Answers are kept, so it pays to ask the same one for all that is shown with a palette. Not for sharing between threads.
final class NearestColours {
    /// 1 to 256.
    let colours: [Pixel]
    /// Of each cell of 64 steps a channel, found when first asked for; −1 until then.
    private var cells = [Int16](repeating: -1, count: 1 << 18)

    /// - Parameter colours: 1 to 256.
    init(_ colours: [Pixel]) { self.colours = colours }

    func index(_ red: Int, _ green: Int, _ blue: Int) -> Int {
        let cell = (red & 0xFC) << 10 | (green & 0xFC) << 4 | blue >> 2
        if cells[cell] >= 0 { return Int(cells[cell]) }
        var best = (index: 0, distance: Int.max)
        for (index, colour) in colours.enumerated() {
            let distance = Self.distance(red, green, blue, colour)
            if distance < best.distance { best = (index, distance) }
        }
        cells[cell] = Int16(best.index)
        return best.index
    }

    /// How far, on average, pixels are from their nearest colours: squared, with the eye's weights.
    ///
    /// - Parameter pixels: opaque ones; transparent black doesn't count. One in `step` is looked at.
    func meanDistance(of pixels: UnsafeMutableBufferPointer<Pixel>, step: Int = 1) -> Double {
        var (sum, count) = (0, 0)
        for place in stride(from: 0, to: pixels.count, by: step) where pixels[place] != Pixel() {
            let pixel = pixels[place]
            let colour = colours[index(pixel.red, pixel.green, pixel.blue)]
            sum += Self.distance(pixel.red, pixel.green, pixel.blue, colour)
            count += 1
        }
        return count == 0 ? 0 : Double(sum) / Double(count)
    }

    /// Squared, with the eye's weights for the three, roughly: 3, 6 and 1.
    static func distance(_ red: Int, _ green: Int, _ blue: Int, _ colour: Pixel) -> Int {
        let (r, g, b) = (red - colour.red, green - colour.green, blue - colour.blue)
        return 3 * r * r + 6 * g * g + b * b
    }
}
