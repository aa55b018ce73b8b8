internal import CZlib

extension PatchedBytes {
    /// A PNG whose chunks' checksums are right and whose last chunk is as long as what there is of it, with an end behind it:
    /// else libpng shows nothing of the chunk that is damaged or cut.
    convenience init(mendingPNG png: UnsafeRawBufferPointer) {
        let reader = ByteReader(png)
        var offset = PNGFormat.signature.count
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

    /// An interlaced PNG that is damaged or cut, as one whose rows come from the top: what has come of it, coarser where its
    /// later passes are missing. Nil for any other, and where unpacking it would take more than `maxBytes`.
    convenience init?(unlacing png: UnsafeRawBufferPointer, maxBytes: Int) {
        guard let picture = InterlacedPNG(png, maxBytes: maxBytes), let chunk = picture.unlaced() else { return nil }
        self.init(UnsafeRawBufferPointer(rebasing: png[..<picture.start]), chunk, Self.pngEnd)
        memory[28] = 0
        setPNGChecksums()
    }

    private static let pngEnd: [UInt8] = [0, 0, 0, 0] + Array("IEND".utf8) + [0xAE, 0x42, 0x60, 0x82]

    private func setPNGChecksums() {
        let reader = ByteReader(bytes)
        var offset = PNGFormat.signature.count
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

    /// The compressed texts of a PNG and its profile, from the one on that begins at an offset.
    convenience init(hidingTextsOf png: UnsafeRawBufferPointer, from start: Int) {
        self.init(png)
        hidePNGChunks(["zTXt", "iTXt", "iCCP"], from: start)
    }

    /// Their checksum has their name in it.
    private func hidePNGChunks(_ names: [StaticString], from start: Int) {
        let reader = ByteReader(bytes)
        var offset = PNGFormat.signature.count
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
