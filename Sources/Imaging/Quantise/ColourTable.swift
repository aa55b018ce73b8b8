import ImageFiles

/// At most 256 opaque colours and their indices, for one lookup for each pixel.
///
/// A hash table with open addressing, four times as large as its maximum number of entries.
struct ColourTable {
    static let maxCount = 256
    private static let slots = 1024

    private(set) var colours: [Pixel] = []
    private var keys = [UInt32](repeating: 0, count: ColourTable.slots)
    private var values = [UInt8](repeating: 0, count: ColourTable.slots)

    init() {}

    /// - Parameter colours: opaque; those after the 256th are left out.
    init(_ colours: [Pixel]) {
        for colour in colours where !insert(colour) { return }
    }

    /// The colours of all pixels except transparent black ones; nil if there are more than 256.
    init?(of pixels: UnsafeMutableBufferPointer<Pixel>) {
        var last = Pixel()
        for pixel in pixels where pixel != last && pixel != Pixel() {
            guard insert(pixel) else { return nil }
            last = pixel
        }
    }

    func index(of colour: Pixel) -> Int? {
        let slot = slot(of: colour)
        return keys[slot] == 0 ? nil : Int(values[slot])
    }

    func contains(allOf other: ColourTable) -> Bool { other.colours.allSatisfy { index(of: $0) != nil } }

    /// - Returns: false if it is full.
    private mutating func insert(_ colour: Pixel) -> Bool {
        let slot = slot(of: colour)
        guard keys[slot] == 0 else { return true }
        guard colours.count < Self.maxCount else { return false }
        keys[slot] = colour.bits
        values[slot] = UInt8(colours.count)
        colours.append(colour)
        return true
    }

    /// The slot of a colour, or the free slot for it. Opaque colours are never 0, which marks a free slot.
    private func slot(of colour: Pixel) -> Int {
        var slot = Int((colour.bits &* 0x9E37_79B1) >> 22)
        while keys[slot] != 0, keys[slot] != colour.bits { slot = (slot + 1) & (Self.slots - 1) }
        return slot
    }
}

/// The colours of a palette, and the nearest of them to any other colour.
///
/// Results are cached, so use one instance for all pixels of a palette. Not for sharing between threads.
final class NearestColours {
    /// 1 to 256.
    let colours: [Pixel]
    /// For each cell of 64 steps a channel the nearest colour; −1 until it is first requested.
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

    /// The mean distance of pixels to their nearest colours: squared, with the eye's weights.
    ///
    /// - Parameter pixels: opaque ones; transparent black ones are skipped. One in `step` is measured.
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

    /// Squared, with the eye's approximate weights of the three channels: 3, 6 and 1.
    static func distance(_ red: Int, _ green: Int, _ blue: Int, _ colour: Pixel) -> Int {
        let (r, g, b) = (red - colour.red, green - colour.green, blue - colour.blue)
        return 3 * r * r + 6 * g * g + b * b
    }
}
