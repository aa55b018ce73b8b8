/// The chunks of pixels of a PNG that may be damaged or cut, and what its header says of them.
struct PNGData {
    let size: PixelSize
    let bitsPerPixel: Int
    let isInterlaced: Bool
    /// What the chunks of pixels hold.
    let parts: [UnsafeRawBufferPointer]
    /// Where the first of them begins.
    let start: Int

    /// Nil for a header that can't be right, and before the first pixels.
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

    /// As PNG has them.
    private static let channels: [UInt8: Int] = [0: 1, 2: 3, 3: 1, 4: 2, 6: 4]
    private static let depths: [UInt8: Set<UInt8>] = [
        0: [1, 2, 4, 8, 16], 2: [8, 16], 3: [1, 2, 4, 8], 4: [8, 16], 6: [8, 16],
    ]
    /// libvips opens no more, and products of two fit.
    private static let longestSide = 10_000_000

    /// Chunks that follow each other; whether their checksums are right doesn't matter, and the last may be cut.
    private static func parts(
        of png: UnsafeRawBufferPointer, _ reader: ByteReader,
    ) -> (start: Int, [UnsafeRawBufferPointer])? {
        var offset = PNGFormat.signature.count
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

    /// Bytes of a row, its filter's number among them.
    func rowLength(_ width: Int) -> Int { 1 + (width * bitsPerPixel + 7) / 8 }

    /// The rows from the top that have come.
    var rows: Int { rows(of: size) }

    /// The rows that have come of a pass that begins the data.
    func rows(of pass: PixelSize) -> Int {
        guard let rows = PNGRows(parts, bitsPerPixel: bitsPerPixel) else { return 0 }
        rows.begin(width: pass.width)
        return (0..<pass.height).first { _ in !rows.skip() } ?? pass.height
    }
}
