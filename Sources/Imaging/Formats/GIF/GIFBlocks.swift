/// Reads the blocks of a GIF.
enum GIFBlocks {
    static let image = UInt8(ascii: ",")
    static let `extension` = UInt8(ascii: "!")
    static let loopNames = ["NETSCAPE2.0", "ANIMEXTS1.0"]

    /// GIF89a, section 18: the logical screen follows the signature.
    static func screen(_ reader: ByteReader) -> PixelSize? {
        guard let width = reader.little(2, at: 6), let height = reader.little(2, at: 8) else { return nil }
        return PixelSize(width: width, height: height)
    }

    /// The visible canvas: the screen, enlarged to hold the first frame, as in browsers. Later frames are cut at its
    /// edges.
    static func canvas(_ reader: ByteReader) -> HeaderFinding {
        guard let screen = screen(reader), let flags = reader.byte(at: 10) else { return .needsMore }
        var offset = 13 + colourTable(flags)
        while let introducer = reader.byte(at: offset), introducer == `extension` {
            offset += 2
            guard skip(&offset, reader) else { break }
        }
        let corner = (0..<4).compactMap { reader.little(2, at: offset + 1 + 2 * $0) }
        guard reader.byte(at: offset) == image, corner.count == 4 else {
            // A screen without pixels is not final while a frame may follow.
            let isOpen = offset >= reader.count || reader.byte(at: offset) == image
            return screen.pixels == 0 && isOpen
                ? .needsMore : .size(width: screen.width, height: screen.height)
        }
        return .size(
            width: max(screen.width, corner[0] + corner[2]), height: max(screen.height, corner[1] + corner[3]))
    }

    /// Bytes of the colour table that these flags announce.
    static func colourTable(_ flags: UInt8) -> Int {
        flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1)
    }

    /// Skips sub-blocks and their end.
    ///
    /// - Returns: whether their end is in the file.
    static func skip(_ offset: inout Int, _ reader: ByteReader) -> Bool {
        while let length = reader.byte(at: offset) {
            offset += 1 + Int(length)
            if length == 0 { return true }
        }
        return false
    }

    /// How often the looping extension says that the animation plays, 0 for ever; nil if it is another extension:
    /// https://www.vurdalakov.net/misc/gif/netscape-looping-application-extension
    ///
    /// Its count is that of the repetitions after the first time, as browsers and gif2webp read it.
    static func loopCount(at offset: Int, _ reader: ByteReader) -> Int? {
        guard reader.has([GIFBlocks.extension, 0xFF, 11], at: offset),
            loopNames.contains(where: { reader.has(Array($0.utf8), at: offset + 3) })
        else { return nil }
        var block = offset + 14
        while let length = reader.byte(at: block), length > 0 {
            // The lower bits are the sub-block's type; type 2 is a buffer size.
            if length >= 3, let kind = reader.byte(at: block + 1), kind & 7 == 1 {
                return reader.little(2, at: block + 2).map { $0 == 0 ? 0 : $0 + 1 }
            }
            block += 1 + Int(length)
        }
        return nil
    }

    /// GIF89a, appendix A: blocks until the trailer.
    static func endEarly(_ reader: ByteReader) -> Bool {
        guard let flags = reader.byte(at: 10) else { return true }
        var offset = 13 + colourTable(flags)
        while let introducer = reader.byte(at: offset) {
            switch introducer {
            case 0x3B: return false
            case 0x21: offset += 2
            case 0x2C:
                guard let flags = reader.byte(at: offset + 9) else { return true }
                offset += 11 + colourTable(flags)  // the descriptor, its colours and the code size
            default: return false
            }
            guard skip(&offset, reader) else { return true }
        }
        return true
    }

    // MARK: - Extras

    /// As ``FormatDefinition/hasExtras(_:_:)``.
    static func areExtra(in reader: ByteReader, _ policy: MetadataPolicy) -> Bool {
        var offset = 13 + colourTable(reader.byte(at: 10) ?? 0)
        while let introducer = reader.byte(at: offset) {
            let start = offset
            switch introducer {
            case 0x3B: return !reader.isPadding(from: offset + 1)
            case `extension`: offset += 2
            case image: offset += 11 + colourTable(reader.byte(at: offset + 9) ?? 0)
            default: return true
            }
            guard skip(&offset, reader) else { return false }
            if introducer == `extension`, !mayStay(extension: start..<offset, reader, policy) { return true }
        }
        return false
    }

    private static func mayStay(
        extension block: Range<Int>, _ reader: ByteReader, _ policy: MetadataPolicy,
    ) -> Bool {
        let start = block.lowerBound
        if reader.byte(at: start + 1) == 0xF9 { return block.count == 8 }
        if reader.has([`extension`, 0xFF, 11], at: start) {
            if reader.has("ICCRGBG1012", at: start + 3) { return policy.keepsProfile }
            if reader.has("XMP DataXMP", at: start + 3) { return policy.keepsAll }
            // A count, and at most a buffer size.
            return block.count <= 32
                && loopNames.contains { reader.has(Array($0.utf8), at: start + 3) }
        }
        return false
    }
}

extension AnimationFacts {
    /// Reads the blocks of a GIF; nil if even the header is missing.
    ///
    /// GIF89a, appendix A: header, screen, colours; then images and extensions, each followed by sub-blocks.
    init?(gif bytes: UnsafeRawBufferPointer) {
        let reader = ByteReader(bytes)
        guard let flags = reader.byte(at: 10), let screen = GIFBlocks.screen(reader) else { return nil }
        if case .size(let width, let height) = GIFBlocks.canvas(reader) {
            self.init(canvas: PixelSize(width: width, height: height))
        } else {
            self.init(canvas: screen)
        }
        isCanvasOfStill = true
        var offset = 13 + GIFBlocks.colourTable(flags)
        while let introducer = reader.byte(at: offset), !endsEarly {
            switch introducer {
            case GIFBlocks.image: endsEarly = !takeImage(&offset, reader)
            case GIFBlocks.extension: endsEarly = !takeExtension(&offset, reader)
            // The trailer; any other byte counts as one, as in browsers.
            default: return
            }
        }
        if frames == 0 { endsEarly = true }
    }

    /// - Returns: whether the whole image is in the file.
    private mutating func takeImage(_ offset: inout Int, _ reader: ByteReader) -> Bool {
        frames += 1
        guard let width = reader.little(2, at: offset + 5), let height = reader.little(2, at: offset + 7),
            let flags = reader.byte(at: offset + 9)
        else { return false }
        // Each side has 16 bits, so the sum overflows only for a file of 2⁶³ bytes.
        drawnPixels += width * height
        offset += 11 + GIFBlocks.colourTable(flags)
        guard GIFBlocks.skip(&offset, reader) else { return false }
        wholeFrames += 1
        return true
    }

    private mutating func takeExtension(_ offset: inout Int, _ reader: ByteReader) -> Bool {
        if let count = GIFBlocks.loopCount(at: offset, reader) { loopCount = count }
        offset += 2
        return GIFBlocks.skip(&offset, reader)
    }
}
