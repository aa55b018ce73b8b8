internal import CZlib
import ImageFiles

/// The visible part of an interlaced PNG that is damaged or cut, as browsers show it: each pixel that has come also
/// fills the places of later passes until their pixels come.
///
/// libpng delivers the rows of an interlaced PNG only when all passes are there, so it delivers none of these.
struct InterlacedPNG {
    private let data: PNGData

    private var size: PixelSize { data.size }
    private var bitsPerPixel: Int { data.bitsPerPixel }
    /// Offset of the first chunk of pixels.
    var start: Int { data.start }

    /// - Parameter maxBytes: maximum memory for unpacking.
    /// - Returns: nil for a PNG that is not interlaced, has no pixels, or needs more memory.
    init?(_ png: UnsafeRawBufferPointer, maxBytes: Int) {
        guard let data = PNGData(png), data.isInterlaced else { return nil }
        // The pixels, and the file that is made of them.
        let bytes = data.size.pixels.multipliedReportingOverflow(by: max(8, data.bitsPerPixel) / 4)
        guard !bytes.overflow, bytes.partialValue <= maxBytes else { return nil }
        self.data = data
    }

    /// Rows from the top with any data: each row of the first pass stands for eight.
    var rows: Int {
        guard let first = InterlacePass.all.first else { return 0 }
        return min(size.height, first.down * data.rows(of: first.size(in: size)))
    }

    private var rowLength: Int { data.rowLength(size.width) }

    /// A chunk of all rows from the top, each after the number of the filter `none`, in zlib's format and uncompressed.
    /// Its checksum must still be set.
    ///
    /// - Returns: nil if not a single row has come.
    func unlaced() -> [UInt8]? {
        guard let rows = PNGRows(data.parts, bitsPerPixel: bitsPerPixel) else { return nil }
        var pixels = [UInt8](repeating: 0, count: rowLength * size.height)
        var count = 0
        passes: for pass in InterlacePass.all {
            let part = pass.size(in: size)
            guard part.pixels > 0 else { continue }
            rows.begin(width: part.width)
            for line in 0..<part.height {
                let hasCome = rows.next { row in
                    pixels.withUnsafeMutableBytes { place(row, of: pass, line: line, in: $0) }
                }
                guard hasCome else { break passes }
                count += 1
            }
        }
        return count > 0 ? Self.chunk(of: pixels) : nil
    }

    private func place(
        _ row: UnsafeRawBufferPointer, of pass: InterlacePass, line: Int, in pixels: UnsafeMutableRawBufferPointer,
    ) {
        let top = pass.top + line * pass.down
        let count = pass.size(in: size).width
        for y in top..<min(top + pass.height, size.height) {
            let start = y * rowLength + 1
            for index in 0..<count {
                let left = pass.left + index * pass.across
                for x in left..<min(left + pass.width, size.width) {
                    copy(row, index, to: pixels, start, x)
                }
            }
        }
    }

    /// - Parameter start: offset of the row whose pixel `x` is set.
    private func copy(
        _ row: UnsafeRawBufferPointer, _ index: Int, to pixels: UnsafeMutableRawBufferPointer, _ start: Int, _ x: Int,
    ) {
        if bitsPerPixel >= 8 {
            let bytes = bitsPerPixel / 8
            for byte in 0..<bytes { pixels[start + x * bytes + byte] = row[index * bytes + byte] }
            return
        }
        let perByte = 8 / bitsPerPixel
        let mask = UInt8(1 << bitsPerPixel - 1)
        let shift = { (place: Int) in UInt8(8 - bitsPerPixel * (place % perByte + 1)) }
        let value = row[index / perByte] >> shift(index) & mask
        let target = start + x / perByte
        pixels[target] = pixels[target] & ~(mask << shift(x)) | value << shift(x)
    }

    private static func chunk(of pixels: [UInt8]) -> [UInt8]? {
        var count = compressBound(UInt(pixels.count))
        let chunk = [UInt8](unsafeUninitializedCapacity: Int(count) + 12) { room, filled in
            let content = room.baseAddress.map { $0 + 8 }
            guard compress2(content, &count, pixels, UInt(pixels.count), Z_NO_COMPRESSION) == Z_OK,
                count <= Int32.max
            else { return }
            let length = withUnsafeBytes(of: UInt32(count).bigEndian) { Array($0) }
            filled = 12 + Int(count)
            for (index, byte) in (length + "IDAT".utf8).enumerated() { room[index] = byte }
            for index in (filled - 4)..<filled { room[index] = 0 }
        }
        return chunk.isEmpty ? nil : chunk
    }
}

/// One of the seven passes of an interlaced PNG. W3C PNG, 8.1.
struct InterlacePass {
    /// The column of its first pixel.
    let left: Int
    let top: Int
    /// The distance between its pixels.
    let across: Int
    let down: Int
    /// The area that each pixel fills until later passes come.
    let width: Int
    let height: Int

    static let all = [
        InterlacePass(left: 0, top: 0, across: 8, down: 8, width: 8, height: 8),
        InterlacePass(left: 4, top: 0, across: 8, down: 8, width: 4, height: 8),
        InterlacePass(left: 0, top: 4, across: 4, down: 8, width: 4, height: 4),
        InterlacePass(left: 2, top: 0, across: 4, down: 4, width: 2, height: 4),
        InterlacePass(left: 0, top: 2, across: 2, down: 4, width: 2, height: 2),
        InterlacePass(left: 1, top: 0, across: 2, down: 2, width: 1, height: 2),
        InterlacePass(left: 0, top: 1, across: 1, down: 2, width: 1, height: 1),
    ]

    /// The size of this pass of a picture.
    func size(in picture: PixelSize) -> PixelSize {
        PixelSize(
            width: max(0, picture.width - left + across - 1) / across,
            height: max(0, picture.height - top + down - 1) / down)
    }
}
