internal import CZlib
import ImageFiles

extension PatchedBytes {
    /// A PNG with corrected checksums, whose last chunk is shortened to the available bytes and followed by an end
    /// mark. Otherwise libpng would show nothing of a damaged or cut chunk.
    convenience init(mendingPNG png: UnsafeRawBufferPointer) {
        let reader = ByteReader(png)
        var offset = PNGHeader.signature.count
        while let length = reader.big(4, at: offset), reader.contains(offset, length: 12 + length) {
            offset += 12 + length
        }
        guard reader.contains(offset, length: 8), reader.has("IDAT", at: offset + 4),
            let length = reader.big(4, at: offset)
        else {
            self.init(UnsafeRawBufferPointer(rebasing: png[..<min(offset, png.count)]), Self.pngEnd)
            setPNGChecksums()
            return
        }
        let room = min(length, png.count - offset - 8)
        self.init(UnsafeRawBufferPointer(rebasing: png[..<(offset + 8 + room)]), [0, 0, 0, 0] + Self.pngEnd)
        memory.storeBytes(of: UInt32(truncatingIfNeeded: room).bigEndian, toByteOffset: offset, as: UInt32.self)
        setPNGChecksums()
    }

    /// A damaged or cut interlaced PNG, converted to rows from the top: the part that has come, coarser where later
    /// passes are missing. Nil for any other PNG, and if unpacking needs more than `maxBytes`.
    convenience init?(unlacing png: UnsafeRawBufferPointer, maxBytes: Int) {
        guard let picture = InterlacedPNG(png, maxBytes: maxBytes), let chunk = picture.unlaced() else { return nil }
        self.init(UnsafeRawBufferPointer(rebasing: png[..<picture.start]), chunk, Self.pngEnd)
        memory[28] = 0
        setPNGChecksums()
    }

    private static let pngEnd: [UInt8] = [0, 0, 0, 0] + Array("IEND".utf8) + [0xAE, 0x42, 0x60, 0x82]

    private func setPNGChecksums() {
        let reader = ByteReader(bytes)
        var offset = PNGHeader.signature.count
        while let length = reader.big(4, at: offset), reader.contains(offset, length: 12 + length) {
            setPNGChecksum(of: offset, length)
            offset += 12 + length
        }
    }

    private func setPNGChecksum(of chunk: Int, _ length: Int) {
        let named = UnsafeRawBufferPointer(rebasing: bytes[(chunk + 4)..<(chunk + 8 + length)])
        let sum = crc32(0, named.bindMemory(to: UInt8.self).baseAddress, UInt32(clamping: named.count))
        memory.storeBytes(
            of: UInt32(truncatingIfNeeded: sum).bigEndian, toByteOffset: chunk + 8 + length, as: UInt32.self)
    }

    /// Hides the compressed texts and the profile of a PNG, from the chunk at this offset on.
    convenience init(hidingTextsOf png: UnsafeRawBufferPointer, from start: Int) {
        self.init(png)
        hidePNGChunks(["zTXt", "iTXt", "iCCP"], from: start)
    }

    /// Their checksums include their names.
    private func hidePNGChunks(_ names: [StaticString], from start: Int) {
        let reader = ByteReader(bytes)
        var offset = PNGHeader.signature.count
        while let length = reader.big(4, at: offset), reader.contains(offset, length: 12 + length) {
            if offset >= start, names.contains(where: { reader.has($0, at: offset + 4) }) {
                // Ancillary, private, and safe to copy.
                memory[(offset + 4)..<(offset + 8)].copyBytes(from: "hiDe".utf8)
                setPNGChecksum(of: offset, length)
            }
            offset += 12 + length
        }
    }

    /// EXIF and texts become chunks that no library knows.
    convenience init(hidingMetadataOfPNG file: UnsafeRawBufferPointer) {
        self.init(file)
        hidePNGChunks(["eXIf", "tEXt", "zTXt", "iTXt"], from: 0)
    }
}
