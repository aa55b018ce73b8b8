/// Whether a file that no decoder could finish was cut short, judged by the container's own lengths and end marks.
///
/// Asked only after a decoder has failed: a whole image that lacks its last byte may well decode.
enum Structure: Equatable {
    /// The container promises more bytes than there are, or its end mark is missing.
    case endsEarly
    /// All that the container promises is there, or it is broken before its end.
    case whole

    init(of bytes: UnsafeRawBufferPointer, as format: ImageFormat) {
        let reader = ByteReader(bytes)
        let endsEarly =
            switch format {
            case .jpeg: Self.jpegEndsEarly(reader)
            case .png: Self.pngEndsEarly(reader)
            case .gif: Self.gifEndsEarly(reader)
            case .webp: Self.webpEndsEarly(reader)
            case .tiff: TIFFStructure(reader).endsEarly
            case .heic, .avif: Self.boxesEndEarly(reader)
            case .jxl: Self.jxlEndsEarly(reader)
            case .bmp: BMPHeader.endsEarly(reader)
            }
        self = endsEarly ? .endsEarly : .whole
    }

    /// Segments by their lengths, so that the end mark of an embedded thumbnail is not taken for the image's.
    private static func jpegEndsEarly(_ reader: ByteReader) -> Bool {
        var offset = 2
        while let marker = JPEGHeader.nextMarker(at: &offset, reader) {
            switch marker {
            case 0xD9: return false
            case 0x00, 0x01, 0xD0...0xD8: continue  // stuffing and restarts, in and between scans
            default:
                guard let length = reader.big(2, at: offset) else { return true }
                guard length >= 2 else { return false }
                offset += length
            }
        }
        return true
    }

    private static func pngEndsEarly(_ reader: ByteReader) -> Bool {
        var offset = ImageFormat.pngSignature.count
        while let length = reader.big(4, at: offset) {
            // A chunk is named by four letters; anything else is damage, and nothing after it can be trusted.
            guard let name = reader.big(4, at: offset + 4) else { return true }
            guard isFourLetters(name), length <= 0x7FFF_FFFF else { return false }
            guard reader.contains(offset, length: 12 + length) else { return true }
            if reader.has("IEND", at: offset + 4) { return false }
            offset += 12 + length
        }
        return true
    }

    private static func isFourLetters(_ name: Int) -> Bool {
        [24, 16, 8, 0].allSatisfy { shift in
            let letter = UInt8(truncatingIfNeeded: name >> shift) | 0x20
            return (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(letter)
        }
    }

    /// A bare codestream tells its length nowhere: what its decoder calls incomplete was cut short.
    private static func jxlEndsEarly(_ reader: ByteReader) -> Bool {
        reader.has([0xFF, 0x0A], at: 0) || boxesEndEarly(reader)
    }

    private static func webpEndsEarly(_ reader: ByteReader) -> Bool {
        guard let size = reader.little(4, at: 4) else { return true }
        return !reader.contains(8, length: size)
    }

    /// ISO/IEC 14496-12, section 4.2: size and type; size 1 puts a 64-bit size after the type, 0 means "to the end".
    private static func boxesEndEarly(_ reader: ByteReader) -> Bool {
        var offset = 0
        var hasMedia = false
        while offset < reader.count {
            guard var size = reader.big(4, at: offset), reader.contains(offset, length: 8) else { return true }
            if size == 0 { return false }
            if size == 1 {
                guard reader.contains(offset, length: 16) else { return true }
                guard let large = reader.big(8, at: offset + 8) else { return false }
                size = large
            }
            guard size >= 8 else { return false }
            guard reader.contains(offset, length: size) else { return true }
            hasMedia = hasMedia || reader.has("mdat", at: offset + 4)
            offset += size
        }
        // A catalogue whose pixels never came.
        return !hasMedia
    }
}

// MARK: - GIF

extension Structure {
    /// GIF89a, appendix A: blocks until the trailer.
    private static func gifEndsEarly(_ reader: ByteReader) -> Bool {
        guard let flags = reader.byte(at: 10) else { return true }
        var offset = 13 + GIFBlocks.colourTable(flags)
        while let introducer = reader.byte(at: offset) {
            switch introducer {
            case 0x3B: return false
            case 0x21: offset += 2
            case 0x2C:
                guard let flags = reader.byte(at: offset + 9) else { return true }
                offset += 11 + GIFBlocks.colourTable(flags)  // the descriptor, its colours and the code size
            default: return false
            }
            guard GIFBlocks.skip(&offset, reader) else { return true }
        }
        return true
    }
}
