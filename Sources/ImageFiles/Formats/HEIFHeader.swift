package import Variants

/// HEIC and AVIF. ISO/IEC 23008-12.
package struct HEIFHeader: FormatHeader {
    package let name: String
    package let keptFormat: VariantSpec.Output?
    package let isInBoxes = true

    /// No browser but Safari shows HEIC, so PNG or JPEG suits better.
    package static let heic = HEIFHeader(name: "heic", keptFormat: nil)
    package static let avif = HEIFHeader(name: "avif", keptFormat: .avif)

    package func begins(_ reader: ByteReader) -> Bool { FileTypeBox(reader)?.format == name }

    package func mayBegin(_ reader: ByteReader) -> Bool {
        reader.count < 12
            && reader.has(Array("ftyp".utf8.prefix(max(0, reader.count - 4))), at: min(4, reader.count))
    }

    package func isDecided(_ reader: ByteReader) -> Bool { FileTypeBox(reader)?.isDecided ?? false }

    package func cost(_ reader: ByteReader, limits: ImageLimits) -> DecoderCost {
        let boxes = HEIFBoxes(reader)
        return DecoderCost(boxes.largest, each: boxes.depth > 8 ? 18 : 9)
    }

    package func endsEarly(_ reader: ByteReader) -> Bool { Boxes.endEarly(reader) }
}

/// The first box of an ISO base media file, with its brands.
package struct FileTypeBox {
    package let major: String
    package let compatible: [String]
    /// Whether the whole box could be read.
    package let isComplete: Bool

    /// Nil if even the major brand is missing.
    package init?(_ reader: ByteReader) {
        guard reader.has("ftyp", at: 4), let size = reader.big(4, at: 0),
            let major = Self.brand(at: 8, reader)
        else { return nil }
        // Images have far fewer brands. Reading stops here instead of waiting for the rest of the box.
        let end = min(max(size, 16), 16 + 4 * 64)
        self.major = major
        compatible = stride(from: 16, to: end - 3, by: 4).compactMap { Self.brand(at: $0, reader) }
        isComplete = reader.count >= end
    }

    /// `heic` or `avif`. If the major brand is neutral, the first brand of one of the two formats decides; until it has
    /// come, the format is HEIC.
    package var format: String? {
        if let format = Self.format(of: major) { return format }
        guard Self.neutral.contains(major) else { return nil }
        return compatible.lazy.compactMap(Self.format).first ?? "heic"
    }

    /// Whether more bytes could still change ``format``.
    package var isDecided: Bool {
        isComplete || !Self.neutral.contains(major) || compatible.contains { Self.format(of: $0) != nil }
    }

    private static let neutral: Set<String> = ["mif1", "msf1"]

    private static func format(of brand: String) -> String? {
        switch brand {
        case "heic", "heix", "hevc", "hevx", "heim", "heis": "heic"
        case "avif", "avis": "avif"
        default: nil
        }
    }

    private static func brand(at offset: Int, _ reader: ByteReader) -> String? {
        guard reader.contains(offset, length: 4) else { return nil }
        return String(decoding: reader.bytes[offset..<(offset + 4)], as: UTF8.self)
    }
}
