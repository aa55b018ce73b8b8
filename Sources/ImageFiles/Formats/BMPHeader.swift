package import Core

/// Bitmaps of Windows and OS/2.
package struct BMPFormatHeader: FormatHeader {
    package let name = "bmp"
    package let signatureLength = BMPHeader.signatureLength

    package func begins(_ reader: ByteReader) -> Bool { BMPHeader.begins(reader) }
    package func mayBegin(_ reader: ByteReader) -> Bool { reader.has("BM", at: 0) && reader.count < signatureLength }

    package func size(_ reader: ByteReader) -> HeaderFinding? {
        do throws(Failure) {
            return try BMPHeader(reader).map { .size(width: $0.width, height: $0.height) } ?? .needsMore
        } catch {
            return .broken(error.message)
        }
    }

    package func cost(_ reader: ByteReader, limits: ImageLimits) -> DecoderCost {
        DecoderCost(BMPHeader.size(reader), each: 9)
    }
    package func endsEarly(_ reader: ByteReader) -> Bool { BMPHeader.endsEarly(reader) }
}

/// The layout of a BMP. Each number is within its bounds, so sums of them do not overflow.
///
/// https://learn.microsoft.com/en-us/windows/win32/gdi/bitmap-storage; OS/2's from "OS/2 Bitmap File Format".
package struct BMPHeader: Equatable {
    package enum Compression: Equatable { case none, rle8, rle4, masks }

    package let width: Int
    package let height: Int
    package let isTopDown: Bool
    /// Bits of a pixel: 1, 4, 8, 16, 24 or 32.
    package let bits: Int
    package let compression: Compression
    /// Offset of the pixels.
    package let pixels: Int
    /// Red, green, blue, alpha; only for 16 and 32 bits.
    package let masks: [BMPMask]
    package let palette: Palette

    package struct Palette: Equatable {
        package let offset: Int
        package let count: Int
        /// Bytes of a palette's colour: 3 in OS/2's first version, otherwise 4.
        package let stride: Int
    }

    package static let signatureLength = 18

    /// Checks the letters, that the pixels lie after the headers, and that the header's length is a known one.
    package static func begins(_ reader: ByteReader) -> Bool {
        guard reader.has("BM", at: 0), let pixels = reader.little(4, at: 10), let length = reader.little(4, at: 14)
        else { return false }
        return lengths.contains(length) && pixels >= 14 + length
    }

    /// OS/2 1 and 2, Windows 3, its two undocumented additions, 4 and 5.
    private static let lengths: Set<Int> = [12, 16, 64, 40, 52, 56, 108, 124]

    /// - Returns: nil if more bytes are needed.
    /// - Throws: class `bad-image`.
    package init?(_ reader: ByteReader) throws(Failure) {
        guard let pixels = reader.little(4, at: 10), let length = reader.little(4, at: 14),
            reader.contains(14, length: length)
        else { return nil }
        let fields = Fields(reader, length: length)
        guard fields.width > 0, fields.height != 0 else { throw Self.broken("it has no pixels") }
        guard fields.planes == 1 else { throw Self.broken("it has \(fields.planes) planes") }
        guard [1, 4, 8, 16, 24, 32].contains(fields.bits) else { throw Self.broken("a pixel has \(fields.bits) bits") }
        self.pixels = pixels
        width = fields.width
        height = abs(fields.height)
        isTopDown = fields.height < 0
        bits = fields.bits
        compression = try Self.compression(fields, length: length)
        guard let (masks, end) = try Self.masks(reader, fields, compression, length: length) else { return nil }
        self.masks = masks
        let size = length == 12 ? 3 : 4
        let wanted = bits > 8 ? 0 : fields.colours == 0 ? 1 << bits : min(fields.colours, 1 << bits)
        palette = Palette(offset: end, count: min(wanted, max(0, (pixels - end) / size)), stride: size)
    }

    /// Bytes of a row; rows are padded to a multiple of four.
    package var rowLength: Int { (width * bits + 31) / 32 * 4 }

    /// The complete rows in a file of this many bytes; the last row needs no padding.
    package func wholeRows(of count: Int) -> Int {
        let (room, last) = (count - pixels, (width * bits + 7) / 8)
        return room < last ? 0 : min(height, (room - last) / rowLength + 1)
    }

    /// Whether the file lacks bytes of its rows, or of the run lengths whose size the header states.
    package static func endsEarly(_ reader: ByteReader) -> Bool {
        // Best effort: a header that cannot be parsed is damaged, and counts as cut only if bytes are missing.
        guard let header = try? BMPHeader(reader) else { return !reader.contains(14, length: 40) }
        guard header.compression == .rle8 || header.compression == .rle4 else {
            // Both sides have at most 32 bits, and a pixel has at most 32 bits.
            return (reader.count - header.pixels) / header.rowLength < header.height
        }
        return !reader.contains(header.pixels, length: reader.little(4, at: 34) ?? 0)
    }

    /// Nil if the header cannot be parsed.
    package static func size(_ reader: ByteReader) -> PixelSize? {
        // Best effort: the decoder meets the same error and reports it.
        (try? BMPHeader(reader)).map { PixelSize(width: $0.width, height: $0.height) }
    }

    package var hasAlpha: Bool { masks.last.map { !$0.isEmpty } ?? false }

    package static func broken(_ why: String) -> Failure {
        Failure(.badImage, "The BMP's header can't be right: \(why).")
    }
}

extension BMPHeader {
    /// The fields of the file; those that the shortest header lacks are 0.
    private struct Fields {
        let width: Int
        let height: Int
        let planes: Int
        let bits: Int
        var compression = 0
        var colours = 0

        /// - Parameter length: of a complete header.
        init(_ reader: ByteReader, length: Int) {
            let isShort = length == 12
            let number = { (size: Int, offset: Int) in reader.little(size, at: offset) ?? 0 }
            width = isShort ? number(2, 18) : Int(Int32(truncatingIfNeeded: number(4, 18)))
            height = isShort ? number(2, 20) : Int(Int32(truncatingIfNeeded: number(4, 22)))
            planes = number(2, isShort ? 22 : 26)
            bits = number(2, isShort ? 24 : 28)
            guard length >= 40 else { return }
            compression = number(4, 30)
            colours = number(4, 46)
        }
    }

    private static func compression(_ fields: Fields, length: Int) throws(Failure) -> Compression {
        switch (fields.compression, fields.bits) {
        case (0, _): return .none
        case (1, 8) where fields.height > 0: return .rle8
        case (2, 4) where fields.height > 0: return .rle4
        // In OS/2's second version these numbers mean fax and run lengths of 24 bits.
        case (3, 16) where length != 64, (3, 32) where length != 64, (6, 16) where length != 64,
            (6, 32) where length != 64:
            return .masks
        default:
            throw broken("compression \(fields.compression) with \(fields.bits) bits a pixel is not known here")
        }
    }

    /// - Returns: the masks and the offset of the palette; nil if more bytes are needed.
    private static func masks(
        _ reader: ByteReader, _ fields: Fields, _ compression: Compression, length: Int,
    ) throws(Failure) -> ([BMPMask], Int)? {
        let end = 14 + length
        guard compression == .masks else {
            let usual: [Int] =
                switch fields.bits {
                case 16: [0x7C00, 0x3E0, 0x1F, 0]
                case 32: [0xFF_0000, 0xFF00, 0xFF, 0]
                default: []
                }
            return (usual.compactMap(BMPMask.init), end)
        }
        // The masks follow Windows 3's header, and are part of all later ones.
        let count = length >= 56 || fields.compression == 6 ? 4 : 3
        guard reader.contains(54, length: 4 * count) else { return nil }
        let values = (0..<4).map { $0 < count ? reader.little(4, at: 54 + 4 * $0) ?? 0 : 0 }
        let masks = values.compactMap(BMPMask.init)
        guard masks.count == 4, values.allSatisfy({ fields.bits == 32 || $0 <= 0xFFFF }) else {
            throw broken("a mask of its colours has holes, or more bits than a pixel")
        }
        return (masks, length == 40 ? end + 4 * count : end)
    }
}

/// The bits of a pixel for one colour, and their conversion to eight bits.
package struct BMPMask: Equatable {
    private let bits: Int
    private let shift: Int
    /// For up to eight bits: each value, scaled to 0…255.
    private let table: [UInt8]
    /// Bits beyond eight, which are dropped.
    private let excess: Int

    package var isEmpty: Bool { bits == 0 }

    /// - Parameter bits: a mask of 32 bits; nil if its bits are not contiguous.
    package init?(_ bits: Int) {
        self.bits = bits
        shift = bits == 0 ? 0 : bits.trailingZeroBitCount
        let most = bits >> shift
        guard most & (most + 1) == 0 else { return nil }
        let count = most.nonzeroBitCount
        excess = max(0, count - 8)
        let top = most >> excess
        table = (0...top).map { top == 0 ? 0 : UInt8(($0 * 255 + top / 2) / top) }
    }

    package func value(of pixel: Int) -> UInt8 { table[(pixel & bits) >> (shift + excess)] }
}
