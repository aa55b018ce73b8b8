internal import Core
import ImageFiles

/// Bitmaps of Windows and OS/2, decoded by a built-in decoder.
struct BMPFormat: OwnFormatDefinition {
    let header: any FormatHeader = ImageFormat.bmp.header
    func coder(takesBeginning: Bool) -> (any ImageCoder)? { BMPCoder(takesBeginning: takesBeginning) }

    let sample = """
        Qk1+AAAAAAAAAD4AAAAoAAAAEAAAABAAAAABAAEAAAAAAEAAAAAAAAAAAAAAAAIAAAAAAAAAMmTIADJkyAAAAAAAAAAAAAAAAAAAAAAAAAAA
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
        """
}

/// Decodes bitmaps of Windows and OS/2: 1 to 32 bits a pixel, palettes, masks and run lengths.
///
/// It does not decode bitmaps that contain a JPEG or PNG for a printer, nor OS/2's fax and 24-bit run lengths.
struct BMPCoder: ImageCoder {
    let name = "bmp"
    let version = "1"
    let mediaType = "image/bmp"
    let fileExtension = "bmp"
    let signatureLength = BMPHeader.signatureLength
    /// Whether the rows of a file that ends early are accepted; the rest is then transparent.
    var takesBeginning = false

    func sniff(_ prefix: UnsafeRawBufferPointer) -> Bool { BMPHeader.begins(ByteReader(prefix)) }

    func header(of prefix: UnsafeRawBufferPointer) throws -> ImageHeader? {
        try BMPHeader(ByteReader(prefix)).map {
            ImageHeader(width: $0.width, height: $0.height, hasAlpha: $0.hasAlpha || takesBeginning)
        }
    }

    func decode(_ bytes: UnsafeRawBufferPointer, limits: ImageLimits) throws -> RGBAImage {
        let reader = ByteReader(bytes)
        guard let header = try BMPHeader(reader) else { throw Self.truncated }
        if let objection = limits.objection(width: header.width, height: header.height) { throw objection }
        let pixels = try PixelBuffer(PixelSize(width: header.width, height: header.height))
        switch header.compression {
        case .rle8, .rle4:
            let colours = try colours(header, reader)
            pixels.lend { $0.update(repeating: colours[0]) }
            if let end = BMPRunLengths(header, colours).decode(reader, to: pixels) {
                guard takesBeginning, end != BMPRunLengths.Place() else { throw Self.truncated }
                clear(pixels, from: end)
            }
        case .none, .masks:
            let rows = header.wholeRows(of: bytes.count)
            guard rows == header.height || takesBeginning && rows > 0 else { throw Self.truncated }
            try fill(pixels, header, reader, rows: rows)
        }
        guard let image = RGBAImage(pixels) else { throw BMPHeader.broken("it has no pixels") }
        return image
    }

    static let truncated = Failure(.truncated, "The BMP ends before its picture does.")

    /// Colours that the palette lacks are black.
    private func colours(_ header: BMPHeader, _ reader: ByteReader) throws(Failure) -> [Pixel] {
        let palette = header.palette
        guard reader.contains(palette.offset, length: palette.count * palette.stride) else { throw Self.truncated }
        return (0..<1 << header.bits).map { index in
            guard index < palette.count else { return Pixel(red: 0, green: 0, blue: 0) }
            let offset = palette.offset + index * palette.stride
            return Pixel(
                red: reader.bytes[offset + 2], green: reader.bytes[offset + 1], blue: reader.bytes[offset])
        }
    }

    /// - Parameter rows: the number of rows in the file, in its order.
    private func fill(
        _ buffer: PixelBuffer, _ header: BMPHeader, _ reader: ByteReader, rows: Int,
    ) throws(Failure) {
        let colours = header.bits <= 8 ? try colours(header, reader) : []
        let row = BMPRow(bits: header.bits, masks: header.masks, colours: colours)
        buffer.lend { pixels in
            for line in 0..<rows {
                let y = header.isTopDown ? line : header.height - 1 - line
                let start = header.pixels + line * header.rowLength
                let length = (header.width * header.bits + 7) / 8
                row.read(
                    UnsafeRawBufferPointer(rebasing: reader.bytes[start..<start + length]),
                    into: UnsafeMutableBufferPointer(rebasing: pixels[y * header.width..<(y + 1) * header.width]))
            }
            let first = header.isTopDown ? 0 : header.height - rows
            if header.hasAlpha { showIfAllHidden(pixels[first * header.width..<(first + rows) * header.width]) }
        }
    }

    /// Clears the part after a place in a picture that begins at its bottom.
    private func clear(_ pixels: PixelBuffer, from end: BMPRunLengths.Place) {
        let size = pixels.size
        let line = size.height - 1 - end.row
        pixels.clear(PixelRectangle(left: end.x, top: line, width: max(0, size.width - end.x), height: 1))
        pixels.clear(PixelRectangle(left: 0, top: 0, width: size.width, height: line))
    }

    /// Many writers declare an alpha mask and leave its bits 0. Browsers show such pictures as opaque.
    private func showIfAllHidden(_ pixels: Slice<UnsafeMutableBufferPointer<Pixel>>) {
        var pixels = pixels
        guard pixels.allSatisfy({ $0.alpha == 0 }) else { return }
        for index in pixels.indices { pixels[index] = pixels[index].opaque }
    }
}

/// Converts an uncompressed row to pixels.
private struct BMPRow {
    let bits: Int
    let masks: [BMPMask]
    let colours: [Pixel]

    func read(_ bytes: UnsafeRawBufferPointer, into pixels: UnsafeMutableBufferPointer<Pixel>) {
        switch bits {
        case 24:
            for x in pixels.indices {
                pixels[x] = Pixel(red: bytes[3 * x + 2], green: bytes[3 * x + 1], blue: bytes[3 * x])
            }
        case 16, 32:
            for x in pixels.indices { pixels[x] = masked(bytes, at: x * bits / 8) }
        default:
            let perByte = 8 / bits
            for x in pixels.indices {
                let shift = 8 - bits * (x % perByte + 1)
                pixels[x] = colours[Int(bytes[x / perByte]) >> shift & ((1 << bits) - 1)]
            }
        }
    }

    private func masked(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> Pixel {
        var pixel = Int(bytes[offset]) | Int(bytes[offset + 1]) << 8
        if bits == 32 { pixel |= Int(bytes[offset + 2]) << 16 | Int(bytes[offset + 3]) << 24 }
        return Pixel(
            red: masks[0].value(of: pixel), green: masks[1].value(of: pixel), blue: masks[2].value(of: pixel),
            alpha: masks[3].isEmpty ? 255 : masks[3].value(of: pixel))
    }
}
