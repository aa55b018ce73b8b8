internal import CWebP

/// A chunk of a WebP file. https://developers.google.com/speed/webp/docs/riff_container
struct WebPChunk {
    let name: String
    let payload: UnsafeRawBufferPointer

    /// The chunks of a file one after the other, or those that a frame is made of; what is cut short is left out.
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

    /// Whether pixels may be transparent, of a `VP8X`, a `VP8L` or a frame's parts.
    var hasAlpha: Bool {
        switch name {
        case "VP8X": (reader.byte(at: 0) ?? 0) & UInt8(ALPHA_FLAG.rawValue) != 0
        // After the signature and twice fourteen bits.
        case "VP8L": (reader.byte(at: 4) ?? 0) & 0x10 != 0
        default: name == "ALPH"
        }
    }

    /// Whether it holds pixels: of a still one or two of them do.
    var isPicture: Bool { ["ALPH", "VP8 ", "VP8L"].contains(name) }

    /// What stands before the payload, whose odd byte is followed by a zero.
    static func header(_ name: String, _ count: Int) -> [UInt8] { Array(name.utf8) + little(count, 4) }

    static func little(_ value: Int, _ bytes: Int) -> [UInt8] {
        (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
}
