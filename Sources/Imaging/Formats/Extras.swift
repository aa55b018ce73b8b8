/// Whether a file has anything besides its pixels that a variant leaves out when it is encoded anew: what libvips tells
/// nothing of, and so can't be seen in a picture.
///
/// What may stay is listed; all else is taken for an extra, whatever it is. Zeros behind the end are padding.
struct Extras {
    let policy: MetadataPolicy

    func areIn(_ bytes: UnsafeRawBufferPointer, _ format: ImageFormat) -> Bool {
        if policy.keepsAll, policy.keepsCopyright { return false }
        let reader = ByteReader(bytes)
        return switch format {
        case .jpeg: areInJPEG(reader)
        case .png: areInPNG(reader)
        case .gif: areInGIF(reader)
        case .webp: areInWebP(reader)
        case .tiff: policy.keepsAll ? false : areInTIFF(reader)
        case .avif, .heic: areInHEIF(reader)
        case .jxl: areInJXL(reader)
        case .bmp: false
        }
    }

    static func isPadding(from end: Int, _ reader: ByteReader) -> Bool {
        end >= reader.count || reader.bytes[max(0, end)...].allSatisfy { $0 == 0 }
    }

    // MARK: - JPEG

    private func areInJPEG(_ reader: ByteReader) -> Bool {
        var offset = 2
        var isInScan = false
        while offset < reader.count {
            // Segments follow each other; only a scan's data lie between.
            guard isInScan || reader.byte(at: offset) == 0xFF else { return true }
            guard let marker = JPEGHeader.nextMarker(at: &offset, reader) else { return false }
            switch marker {
            case 0xD9: return !Self.isPadding(from: offset, reader)
            case 0x00, 0x01, 0xD0...0xD8: continue
            default:
                guard let length = reader.big(2, at: offset), mayStay(segment: marker, at: offset + 2, length, reader)
                else { return true }
                isInScan = marker == 0xDA
                offset += length
            }
        }
        return false
    }

    private func mayStay(segment marker: UInt8, at start: Int, _ length: Int, _ reader: ByteReader) -> Bool {
        switch marker {
        // Without a thumbnail.
        case 0xE0: length == 16 && reader.has("JFIF\0", at: start)
        case 0xE1:
            policy.keepsAll
                && (reader.has("Exif\0\0", at: start) || reader.has("http://ns.adobe.com/xap/1.0/\0", at: start))
        case 0xE2: policy.keepsProfile && reader.has("ICC_PROFILE\0", at: start)
        case 0xED: policy.keepsAll && reader.has("Photoshop 3.0\0", at: start)
        case 0xEE: length == 14 && reader.has("Adobe", at: start)
        case 0xE3...0xEF, 0xF0...0xFE: false
        default: length >= 2
        }
    }

    // MARK: - PNG

    private static let pictureChunks: Set<String> = [
        "IHDR", "PLTE", "IDAT", "IEND", "tRNS", "gAMA", "cHRM", "sRGB", "sBIT", "bKGD", "hIST", "pHYs", "cICP", "mDCv",
        "cLLi", "acTL", "fcTL", "fdAT",
    ]

    private func areInPNG(_ reader: ByteReader) -> Bool {
        var offset = ImageFormat.pngSignature.count
        while let length = reader.big(4, at: offset), reader.contains(offset, length: 12 + length) {
            let name = String(decoding: reader.bytes[(offset + 4)..<(offset + 8)], as: UTF8.self)
            offset += 12 + length
            if name == "IEND" { return !Self.isPadding(from: offset, reader) }
            switch name {
            // libvips tells of those that are someone's.
            case "tEXt", "zTXt", "iTXt", "eXIf", "tIME": if !policy.keepsAll { return true }
            case "iCCP": if !policy.keepsProfile { return true }
            default: if !Self.pictureChunks.contains(name) { return true }
            }
        }
        return false
    }

    // MARK: - GIF

    private func areInGIF(_ reader: ByteReader) -> Bool {
        var offset = 13 + GIFBlocks.colourTable(reader.byte(at: 10) ?? 0)
        while let introducer = reader.byte(at: offset) {
            let start = offset
            switch introducer {
            case 0x3B: return !Self.isPadding(from: offset + 1, reader)
            case GIFBlocks.extension: offset += 2
            case GIFBlocks.image: offset += 11 + GIFBlocks.colourTable(reader.byte(at: offset + 9) ?? 0)
            default: return true
            }
            guard GIFBlocks.skip(&offset, reader) else { return false }
            if introducer == GIFBlocks.extension, !mayStay(extension: start..<offset, reader) { return true }
        }
        return false
    }

    private func mayStay(extension block: Range<Int>, _ reader: ByteReader) -> Bool {
        let start = block.lowerBound
        if reader.byte(at: start + 1) == 0xF9 { return block.count == 8 }
        if reader.has([GIFBlocks.extension, 0xFF, 11], at: start) {
            if reader.has("ICCRGBG1012", at: start + 3) { return policy.keepsProfile }
            if reader.has("XMP DataXMP", at: start + 3) { return policy.keepsAll }
            // A count, and at most the size of a buffer.
            return block.count <= 32
                && GIFBlocks.loopNames.contains { reader.has(Array($0.utf8), at: start + 3) }
        }
        return false
    }

    // MARK: - WebP

    private func areInWebP(_ reader: ByteReader) -> Bool {
        guard let size = reader.little(4, at: 4), Self.isPadding(from: 8 + size, reader) else { return true }
        return WebPChunk.all(in: reader.bytes).contains { chunk in
            switch chunk.name {
            case "VP8X", "VP8 ", "VP8L", "ALPH", "ANIM": false
            case "ANMF": WebPChunk.all(in: chunk.payload, from: 16).contains { !Self.frameChunks.contains($0.name) }
            case "ICCP": !policy.keepsProfile
            case "EXIF", "XMP ": !policy.keepsAll
            // Zeros that pad the file.
            case "\0\0\0\0": false
            default: true
            }
        }
    }

    private static let frameChunks: Set<String> = ["VP8 ", "VP8L", "ALPH"]
}
