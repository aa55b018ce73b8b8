public import SystemPackage

/// What a picture is, told without a decoder.
public struct PlainFacts: Sendable {
    private let limits: ImageLimits
    private let coders: CoderRegistry

    public init(limits: ImageLimits, coders: CoderRegistry = CoderRegistry()) {
        self.limits = limits
        self.coders = coders
    }

    /// The facts of a PNG without anything unusual in it, which are those that ``Transformer/facts(of:)`` tells; nil for
    /// everything else, and for whatever looks wrong.
    ///
    /// - Parameter source: a regular file, read from its first byte whatever its offset, and left open.
    public func facts(of source: FileDescriptor) -> ImageFacts? {
        // What can't be read is judged by whoever may say why.
        try? SourceMapping(source).lend { bytes throws(ImagingError) in
            guard case .library(.png)? = coders.coder(for: bytes), let png = PlainPNG(ByteReader(bytes)),
                limits.objection(width: png.width, height: png.height) == nil,
                DecoderCost(bytes, as: .png, limits: limits).objection(limits) == nil
            else { return nil }
            return ImageFacts(
                formatName: ImageFormat.png.rawValue, width: png.width, height: png.height, frames: 1,
                hasAlpha: png.hasAlpha)
        }
    }
}

/// The chunks of a PNG (third edition, section 5), as long as each of them is one that changes nothing but colours.
private struct PlainPNG {
    private(set) var width = 0
    private(set) var height = 0
    private(set) var hasAlpha = false

    /// The bit depths of each colour type.
    private static let depths: [UInt8: Set<UInt8>] = [
        0: [1, 2, 4, 8, 16], 2: [8, 16], 3: [1, 2, 4, 8], 4: [8, 16], 6: [8, 16],
    ]

    init?(_ reader: ByteReader) {
        var offset = ImageFormat.pngSignature.count
        guard readHeader(reader, offset), let colours = reader.byte(at: offset + 17) else { return nil }
        offset += 25
        var (hasPalette, hasPixels) = (false, false)
        while let length = reader.big(4, at: offset), reader.contains(offset, length: 12 + length) {
            let name = offset + 4
            if reader.has("IDAT", at: name) {
                hasPixels = true
            } else if reader.has("IEND", at: name) {
                guard length == 0, hasPixels, hasPalette || colours != 3 else { return nil }
                return
            } else if reader.has("PLTE", at: name) {
                guard !hasPalette, !hasPixels, [2, 3, 6].contains(colours), (3...768).contains(length), length % 3 == 0,
                    reader.hasSum(at: offset, length: length)
                else { return nil }
                hasPalette = true
            } else if reader.has("tRNS", at: name) {
                // Of other lengths decoders think differently.
                guard !hasAlpha, !hasPixels, length == [0: 2, 2: 6][colours] ?? (hasPalette ? 1 : -1),
                    reader.hasSum(at: offset, length: length)
                else { return nil }
                hasAlpha = true
            } else if !Self.isHarmless(reader, name) {
                return nil
            }
            offset += 12 + length
        }
        return nil
    }

    private mutating func readHeader(_ reader: ByteReader, _ offset: Int) -> Bool {
        guard reader.big(4, at: offset) == 13, reader.has("IHDR", at: offset + 4),
            reader.hasSum(at: offset, length: 13),
            let width = reader.big(4, at: offset + 8), let height = reader.big(4, at: offset + 12),
            let depth = reader.byte(at: offset + 16), let colours = reader.byte(at: offset + 17),
            Self.depths[colours]?.contains(depth) == true,
            reader.has([0, 0], at: offset + 18), let interlace = reader.byte(at: offset + 20), interlace <= 1
        else { return false }
        (self.width, self.height) = (width, height)
        hasAlpha = colours == 4 || colours == 6
        return true
    }

    private static func isHarmless(_ reader: ByteReader, _ name: Int) -> Bool {
        let harmless: [StaticString] = ["gAMA", "sRGB", "cHRM", "pHYs", "bKGD", "tIME", "sBIT"]
        return harmless.contains { reader.has($0, at: name) }
    }
}

extension ByteReader {
    /// Whether the chunk at `offset` ends with the CRC of its name and data (PNG, annex D).
    fileprivate func hasSum(at offset: Int, length: Int) -> Bool {
        guard contains(offset, length: 12 + length), let expected = big(4, at: offset + 8 + length) else {
            return false
        }
        var sum: UInt32 = 0xFFFF_FFFF
        for byte in bytes[(offset + 4)..<(offset + 8 + length)] {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 1 ? 0xEDB8_8320 ^ (sum >> 1) : sum >> 1 }
        }
        return Int(~sum) == expected
    }
}
