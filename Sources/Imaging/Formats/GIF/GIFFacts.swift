import ImageFiles

extension GIFBlocks {
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
