internal import CWebP
import ImageFiles

/// A chunk of a WebP file. https://developers.google.com/speed/webp/docs/riff_container
struct WebPChunk {
    let name: String
    let payload: UnsafeRawBufferPointer

    /// The chunks of a file or of a frame, in order; an incomplete chunk is left out.
    static func all(in bytes: UnsafeRawBufferPointer, from start: Int = 12) -> [WebPChunk] {
        let reader = ByteReader(bytes)
        var chunks: [WebPChunk] = []
        var offset = start
        while let count = reader.little(4, at: offset + 4), reader.contains(offset + 8, length: count) {
            let name = String(decoding: bytes[offset..<(offset + 4)], as: UTF8.self)
            chunks.append(
                WebPChunk(name: name, payload: UnsafeRawBufferPointer(rebasing: bytes[(offset + 8)...].prefix(count))))
            offset += 8 + count + count & 1
        }
        return chunks
    }

    var reader: ByteReader { ByteReader(payload) }

    /// Whether pixels may be transparent, for a `VP8X`, a `VP8L` or a frame's parts.
    var hasAlpha: Bool {
        switch name {
        case "VP8X": (reader.byte(at: 0) ?? 0) & UInt8(ALPHA_FLAG.rawValue) != 0
        // After the signature and two numbers of fourteen bits.
        case "VP8L": (reader.byte(at: 4) ?? 0) & 0x10 != 0
        default: name == "ALPH"
        }
    }

    /// Whether it holds pixels; a still has one or two such chunks.
    var isPicture: Bool { ["ALPH", "VP8 ", "VP8L"].contains(name) }

    /// The header of a chunk. A zero must follow an odd payload.
    static func header(_ name: String, _ count: Int) -> [UInt8] { Array(name.utf8) + little(count, 4) }

    static func little(_ value: Int, _ bytes: Int) -> [UInt8] {
        (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    /// As ``FormatDefinition/hasExtras(_:_:)``.
    static func areExtra(in reader: ByteReader, _ policy: MetadataPolicy) -> Bool {
        guard let size = reader.little(4, at: 4), reader.isPadding(from: 8 + size) else { return true }
        return all(in: reader.bytes).contains { chunk in
            switch chunk.name {
            case "VP8X", "VP8 ", "VP8L", "ALPH", "ANIM": false
            case "ANMF": all(in: chunk.payload, from: 16).contains { !frameChunks.contains($0.name) }
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
