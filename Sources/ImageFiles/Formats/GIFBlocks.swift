package import Variants

/// GIF. GIF89a.
package struct GIFHeader: FormatHeader {
    package let name = "gif"
    /// PNG or JPEG suits a still better.
    package let keptFormat: VariantSpec.Output? = nil

    package func begins(_ reader: ByteReader) -> Bool { reader.has("GIF87a", at: 0) || reader.has("GIF89a", at: 0) }
    package func mayBegin(_ reader: ByteReader) -> Bool { reader.mayBecome([Array("GIF8".utf8)]) }

    package func size(_ reader: ByteReader) -> HeaderFinding? { GIFBlocks.canvas(reader) }

    package func cost(_ reader: ByteReader, limits: ImageLimits) -> DecoderCost {
        DecoderCost(GIFBlocks.canvas(reader).pixelSize, each: 8)
    }

    package func endsEarly(_ reader: ByteReader) -> Bool { GIFBlocks.endEarly(reader) }
}

/// Reads the blocks of a GIF.
package enum GIFBlocks {
    package static let image = UInt8(ascii: ",")
    package static let `extension` = UInt8(ascii: "!")
    package static let loopNames = ["NETSCAPE2.0", "ANIMEXTS1.0"]

    /// GIF89a, section 18: the logical screen follows the signature.
    package static func screen(_ reader: ByteReader) -> PixelSize? {
        guard let width = reader.little(2, at: 6), let height = reader.little(2, at: 8) else { return nil }
        return PixelSize(width: width, height: height)
    }

    /// The visible canvas: the screen, enlarged to hold the first frame, as in browsers. Later frames are cut at its
    /// edges.
    package static func canvas(_ reader: ByteReader) -> HeaderFinding {
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
    package static func colourTable(_ flags: UInt8) -> Int {
        flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1)
    }

    /// Skips sub-blocks and their end.
    ///
    /// - Returns: whether their end is in the file.
    package static func skip(_ offset: inout Int, _ reader: ByteReader) -> Bool {
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
    package static func loopCount(at offset: Int, _ reader: ByteReader) -> Int? {
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
    package static func endEarly(_ reader: ByteReader) -> Bool {
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
}
