internal import CZlib
import ImageFiles

/// A complete chunk.
struct PNGChunk {
    let name: String
    let content: Range<Int>

    /// Nil if the bytes end before the chunk.
    init?(at offset: Int, _ reader: ByteReader) {
        guard let length = reader.big(4, at: offset), reader.contains(offset, length: 12 + length) else { return nil }
        name = String(decoding: reader.bytes[(offset + 4)..<(offset + 8)], as: UTF8.self)
        content = (offset + 8)..<(offset + 8 + length)
    }

    /// The offset after its checksum.
    var end: Int { content.upperBound + 4 }

    /// A number of four bytes.
    ///
    /// - Parameter place: an offset in the content, which must be long enough.
    func number(_ place: Int, _ reader: ByteReader) -> Int { reader.big(4, at: content.lowerBound + place) ?? 0 }

    /// A name with other characters is damage, and nothing after it can be trusted.
    var isNamedByLetters: Bool { name.utf8.count == 4 && name.unicodeScalars.allSatisfy(\.isASCIILetter) }

    func isIntact(_ reader: ByteReader) -> Bool {
        let named = UnsafeRawBufferPointer(rebasing: reader.bytes[(content.lowerBound - 4)..<content.upperBound])
        return reader.big(4, at: content.upperBound) == Int(Self.checksum(of: named))
    }

    static func checksum(of bytes: UnsafeRawBufferPointer, after sum: UInt = 0) -> UInt {
        crc32_z(sum, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
    }

    /// Builds a whole chunk.
    static func bytes(_ name: String, _ content: [UInt8]) -> [UInt8] {
        let named = Array(name.utf8) + content
        let sum = named.withUnsafeBytes { checksum(of: $0) }
        return big(content.count, 4) + named + big(Int(sum), 4)
    }

    /// Most significant byte first.
    static func big(_ number: Int, _ length: Int) -> [UInt8] {
        (0..<length).map { UInt8(truncatingIfNeeded: number >> (8 * (length - 1 - $0))) }
    }
}

extension Unicode.Scalar {
    fileprivate var isASCIILetter: Bool { ("a"..."z").contains(self) || ("A"..."Z").contains(self) }
}

/// The chunks of a PNG: length, name, content, checksum.
enum PNGChunks {
    /// Whether the end mark is missing, or a chunk is longer than the remaining bytes.
    static func endEarly(_ reader: ByteReader) -> Bool {
        var offset = PNGHeader.signature.count
        while let length = reader.big(4, at: offset) {
            // A chunk's name has four letters; anything else is damage, and nothing after it can be trusted.
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

    private static let pictureChunks: Set<String> = [
        "IHDR", "PLTE", "IDAT", "IEND", "tRNS", "gAMA", "cHRM", "sRGB", "sBIT", "bKGD", "hIST", "pHYs", "cICP", "mDCv",
        "cLLi", "acTL", "fcTL", "fdAT",
    ]

    static func areExtra(in reader: ByteReader, _ policy: MetadataPolicy) -> Bool {
        var offset = PNGHeader.signature.count
        while let length = reader.big(4, at: offset), reader.contains(offset, length: 12 + length) {
            let name = String(decoding: reader.bytes[(offset + 4)..<(offset + 8)], as: UTF8.self)
            offset += 12 + length
            if name == "IEND" { return !reader.isPadding(from: offset) }
            switch name {
            // libvips reports those with metadata.
            case "tEXt", "zTXt", "iTXt", "eXIf", "tIME": if !policy.keepsAll { return true }
            case "iCCP": if !policy.keepsProfile { return true }
            default: if !pictureChunks.contains(name) { return true }
            }
        }
        return false
    }
}

/// The compressed chunks of a PNG besides its pixels: profiles and texts, which may unpack to a thousand times their
/// size.
///
/// libpng drops such chunks silently, after some work. Those of a file that would cost too much memory are left out.
enum PNGTexts {
    /// Maximum unpacked bytes of all such chunks of a file. Profiles have up to some 4 MiB, and XMP little more.
    static let maxBytes = 32 << 20

    /// Skips the chunks by their lengths, and unpacks no more than ``most`` bytes, which takes some 50 ms.
    ///
    /// - Returns: the offset of the chunk that exceeds the limit; nil if there is none.
    static func excess(_ reader: ByteReader) -> Int? {
        var offset = PNGHeader.signature.count
        var left = maxBytes
        while let length = reader.big(4, at: offset), reader.contains(offset, length: 12 + length) {
            let name = offset + 4
            if reader.has("iCCP", at: name) || reader.has("zTXt", at: name) || reader.has("iTXt", at: name) {
                let content = UnsafeRawBufferPointer(rebasing: reader.bytes[(name + 4)..<(name + 4 + length)])
                guard let start = compressed(in: content, isInternational: reader.has("iTXt", at: name)) else {
                    offset += 12 + length
                    continue
                }
                left -= Inflated(UnsafeRawBufferPointer(rebasing: content[start...]), most: left).count
                if left <= 0 { return offset }
            }
            if reader.has("IEND", at: name) { return nil }
            offset += 12 + length
        }
        return nil
    }

    /// Where zlib's data begin: after a name and the method, and in iTXt after a language and a translation.
    private static func compressed(in content: UnsafeRawBufferPointer, isInternational: Bool) -> Int? {
        guard let end = content.firstIndex(of: 0) else { return nil }
        guard isInternational else { return end + 2 <= content.count ? end + 2 : nil }
        guard end + 3 <= content.count, content[end + 1] == 1,
            let language = content[(end + 3)...].firstIndex(of: 0),
            let translation = content[(language + 1)...].firstIndex(of: 0)
        else { return nil }
        return translation + 1
    }
}
