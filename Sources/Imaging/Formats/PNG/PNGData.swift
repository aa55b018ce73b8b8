import ImageFiles

/// The pixel chunks of a PNG that may be damaged or cut, and their format by its header.
struct PNGData {
    let size: PixelSize
    let bitsPerPixel: Int
    let isInterlaced: Bool
    /// The contents of the pixel chunks.
    let parts: [UnsafeRawBufferPointer]
    /// Offset of the first of them.
    let start: Int

    /// Nil for an invalid header, and if no pixels have come.
    init?(_ png: UnsafeRawBufferPointer) {
        let reader = ByteReader(png)
        // W3C PNG, 11.2.1: width, height, depth, colour type, compression, filter, interlace.
        guard reader.has("IHDR", at: 12), let width = reader.big(4, at: 16), let height = reader.big(4, at: 20),
            let depth = reader.byte(at: 24), let type = reader.byte(at: 25), let interlace = reader.byte(at: 28),
            let channels = Self.channels[type], Self.depths[type]?.contains(depth) == true,
            (1...Self.longestSide).contains(width), (1...Self.longestSide).contains(height),
            let (start, parts) = Self.parts(of: png, reader)
        else { return nil }
        size = PixelSize(width: width, height: height)
        bitsPerPixel = channels * Int(depth)
        isInterlaced = interlace == 1
        (self.start, self.parts) = (start, parts)
    }

    /// Channels for each colour type of PNG.
    private static let channels: [UInt8: Int] = [0: 1, 2: 3, 3: 1, 4: 2, 6: 4]
    private static let depths: [UInt8: Set<UInt8>] = [
        0: [1, 2, 4, 8, 16], 2: [8, 16], 3: [1, 2, 4, 8], 4: [8, 16], 6: [8, 16],
    ]
    /// libvips' limit for a side; products of two sides do not overflow.
    private static let longestSide = 10_000_000

    /// Consecutive pixel chunks. Their checksums are not checked, and the last one may be cut.
    private static func parts(
        of png: UnsafeRawBufferPointer, _ reader: ByteReader,
    ) -> (start: Int, [UnsafeRawBufferPointer])? {
        var offset = PNGHeader.signature.count
        var start: Int?
        var parts: [UnsafeRawBufferPointer] = []
        while let length = reader.big(4, at: offset), reader.contains(offset, length: 8) {
            if reader.has("IDAT", at: offset + 4) {
                start = start ?? offset
                let content = offset + 8
                parts.append(UnsafeRawBufferPointer(rebasing: png[content..<min(content + length, png.count)]))
            } else if start != nil {
                break
            }
            offset += 12 + length
        }
        return start.map { ($0, parts) }
    }

    /// Bytes of a row, including the filter's number.
    func rowLength(_ width: Int) -> Int { 1 + (width * bitsPerPixel + 7) / 8 }

    /// The number of rows from the top that have come.
    var rows: Int { rows(of: size) }

    /// The number of rows that have come, if the data begin with this pass.
    func rows(of pass: PixelSize) -> Int {
        guard let rows = PNGRows(parts, bitsPerPixel: bitsPerPixel) else { return 0 }
        rows.begin(width: pass.width)
        return (0..<pass.height).first { _ in !rows.skip() } ?? pass.height
    }
}
