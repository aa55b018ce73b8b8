import ImageFiles

/// Decodes BMP run lengths of eight or four bits. Pixels that they skip keep their colour.
struct BMPRunLengths {
    private let header: BMPHeader
    /// The colour for each value of a pixel.
    private let colours: [Pixel]
    private var place = Place()

    struct Place: Equatable {
        var x = 0
        /// Counted from the bottom.
        var row = 0
    }

    init(_ header: BMPHeader, _ colours: [Pixel]) {
        self.header = header
        self.colours = colours
    }

    /// Runs that leave the picture are cut at its edge.
    ///
    /// - Returns: the place where the data end too early; nil if the data or the picture are complete.
    func decode(_ reader: ByteReader, to pixels: PixelBuffer) -> Place? {
        var state = self
        return pixels.lend { state.run(reader, $0) } ? nil : state.place
    }

    private mutating func run(_ reader: ByteReader, _ pixels: UnsafeMutableBufferPointer<Pixel>) -> Bool {
        var offset = header.pixels
        while place.row < header.height {
            guard let count = reader.byte(at: offset), let value = reader.byte(at: offset + 1) else { return isFull }
            offset += 2
            switch (count, value) {
            case (0, 0): place = Place(x: 0, row: place.row + 1)
            case (0, 1): return true
            case (0, 2):
                guard let right = reader.byte(at: offset), let up = reader.byte(at: offset + 1) else { return false }
                offset += 2
                place = Place(x: place.x + Int(right), row: place.row + Int(up))
            case (0, _):
                let length = isNibbles ? (Int(value) + 1) / 2 : Int(value)
                guard reader.contains(offset, length: length) else { return false }
                for index in 0..<Int(value) {
                    put(colour(index, reader.bytes[offset + (isNibbles ? index / 2 : index)]), pixels)
                }
                offset += length + length % 2
            default:
                for index in 0..<Int(count) { put(colour(index, value), pixels) }
            }
        }
        return true
    }

    private var isNibbles: Bool { header.compression == .rle4 }

    /// Whether the last pixel is there, so that only the end mark is missing.
    private var isFull: Bool { place.row == header.height - 1 && place.x >= header.width }

    private func colour(_ index: Int, _ byte: UInt8) -> Pixel {
        guard isNibbles else { return colours[Int(byte)] }
        return colours[Int(index % 2 == 0 ? byte >> 4 : byte & 15)]
    }

    private mutating func put(_ colour: Pixel, _ pixels: UnsafeMutableBufferPointer<Pixel>) {
        if place.x < header.width { pixels[(header.height - 1 - place.row) * header.width + place.x] = colour }
        place.x += 1
    }
}
