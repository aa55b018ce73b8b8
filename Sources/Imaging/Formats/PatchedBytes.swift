internal import CZlib

/// A copy of a file with a few bytes changed, for libraries that stumble over what doesn't matter to the pixels.
final class PatchedBytes {
    private let memory: UnsafeMutableRawBufferPointer

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(memory) }

    private init(_ file: UnsafeRawBufferPointer, _ more: [UInt8] = [], _ end: [UInt8] = []) {
        memory = .allocate(byteCount: max(1, file.count + more.count + end.count), alignment: 16)
        memory.copyMemory(from: file)
        if !more.isEmpty { memory[file.count...].copyBytes(from: more) }
        if !end.isEmpty { memory[(file.count + more.count)...].copyBytes(from: end) }
    }

    deinit { memory.deallocate() }

    /// A GIF whose screen holds its first frame; nil where it does already, and where there is none.
    convenience init?(growingScreenOf gif: UnsafeRawBufferPointer) {
        let reader = ByteReader(gif)
        guard case .size(let width, let height) = GIFBlocks.canvas(reader),
            width != reader.little(2, at: 6) || height != reader.little(2, at: 8),
            let across = UInt16(exactly: width), let down = UInt16(exactly: height)
        else { return nil }
        self.init(gif)
        memory.storeBytes(of: across.littleEndian, toByteOffset: 6, as: UInt16.self)
        memory.storeBytes(of: down.littleEndian, toByteOffset: 8, as: UInt16.self)
    }

    /// EXIF, XMP, IPTC and texts become blocks that no library knows; profiles stay. Nil where the format's metadata are no
    /// reason to fail.
    convenience init?(hidingMetadataOf file: UnsafeRawBufferPointer, _ format: ImageFormat) {
        switch format {
        case .jpeg:
            self.init(file)
            hideJPEGSegments()
        case .png:
            self.init(file)
            hidePNGChunks(["eXIf", "tEXt", "zTXt", "iTXt"], from: 0)
        case .webp:
            self.init(file)
            hideWebPChunks()
        case .heic, .avif:
            self.init(file)
            hideHEIFItems()
        case .gif, .tiff, .jxl, .bmp: return nil
        }
    }

    /// The compressed texts of a PNG and its profile, from the one on that begins at an offset.
    convenience init(hidingTextsOf png: UnsafeRawBufferPointer, from start: Int) {
        self.init(png)
        hidePNGChunks(["zTXt", "iTXt", "iCCP"], from: start)
    }

    /// A WebP that was cut, as if it were to end where it does: its last chunk is shortened, or left out where it is no
    /// still's picture. Nil for one that wasn't.
    convenience init?(endingEarly webp: UnsafeRawBufferPointer) {
        let reader = ByteReader(webp)
        guard Structure(of: webp, as: .webp) == .endsEarly, webp.count >= 20 else { return nil }
        var offset = 12
        while let length = reader.little(4, at: offset + 4), reader.contains(offset + 8, length: length) {
            offset += 8 + length + length % 2
        }
        self.init(webp)
        var end = min(offset, webp.count)
        let names: [StaticString] = ["VP8 ", "VP8L", "ALPH"]
        if webp.count > offset + 8, names.contains(where: { reader.has($0, at: offset) }) {
            let room = (webp.count - offset - 8) & ~1
            memory.storeBytes(
                of: UInt32(truncatingIfNeeded: room).littleEndian, toByteOffset: offset + 4, as: UInt32.self)
            end = offset + 8 + room
        }
        memory.storeBytes(of: UInt32(truncatingIfNeeded: end - 8).littleEndian, toByteOffset: 4, as: UInt32.self)
    }

    /// A PNG whose chunks' checksums are right and whose last chunk is as long as what there is of it, with an end behind it:
    /// else libpng shows nothing of the chunk that is damaged or cut.
    convenience init(mendingPNG png: UnsafeRawBufferPointer) {
        let reader = ByteReader(png)
        var offset = ImageFormat.pngSignature.count
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
    /// later passes are missing. Nil for any other, and where unpacking it would take more than `most` bytes.
    convenience init?(unlacing png: UnsafeRawBufferPointer, most: Int) {
        guard let picture = InterlacedPNG(png, most: most), let chunk = picture.unlaced() else { return nil }
        self.init(UnsafeRawBufferPointer(rebasing: png[..<picture.start]), chunk, Self.pngEnd)
        memory[28] = 0
        setPNGChecksums()
    }

    private static let pngEnd: [UInt8] = [0, 0, 0, 0] + Array("IEND".utf8) + [0xAE, 0x42, 0x60, 0x82]

    private func setPNGChecksums() {
        let reader = ByteReader(bytes)
        var offset = ImageFormat.pngSignature.count
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

    /// A GIF of this one's screen and colours, and of a single pixel: what libvips opens where it can't open the file.
    convenience init?(stubOf gif: UnsafeRawBufferPointer) {
        let reader = ByteReader(gif)
        let end = 13 + GIFBlocks.colourTable(reader.byte(at: 10) ?? 0)
        guard reader.contains(0, length: end) else { return nil }
        let pixel: [UInt8] = [0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 0x01, 0, 0x3B]
        self.init(UnsafeRawBufferPointer(rebasing: gif[..<end]), pixel)
    }

    // MARK: - By format

    /// APP1 and APP13 become APP11, whose content nobody reads.
    private func hideJPEGSegments() {
        let reader = ByteReader(bytes)
        var offset = 2
        while let marker = JPEGHeader.nextMarker(at: &offset, reader), ![0xD9, 0xDA].contains(marker) {
            if [0x00, 0x01].contains(marker) || (0xD0...0xD8).contains(marker) { continue }
            if marker == 0xE1 || marker == 0xED { memory[offset - 1] = 0xEB }
            offset += max(2, reader.big(2, at: offset) ?? 2)
        }
    }

    /// Their checksum has their name in it.
    private func hidePNGChunks(_ names: [StaticString], from start: Int) {
        let reader = ByteReader(bytes)
        var offset = ImageFormat.pngSignature.count
        while let length = reader.big(4, at: offset), reader.contains(offset, length: 12 + length) {
            if offset >= start, names.contains(where: { reader.has($0, at: offset + 4) }) {
                // Ancillary, private, and safe to copy.
                memory[(offset + 4)..<(offset + 8)].copyBytes(from: "hiDe".utf8)
                setPNGChecksum(of: offset, length)
            }
            offset += 12 + length
        }
    }

    /// libheif reads all items when it opens a file, and gives up where one lies outside: EXIF and XMP become empty.
    private func hideHEIFItems() {
        for place in HEIFItems(ByteReader(bytes))?.placesOfMetadata ?? [] {
            for offset in place { memory[offset] = 0 }
        }
    }

    private func hideWebPChunks() {
        let reader = ByteReader(bytes)
        var offset = 12
        while let length = reader.little(4, at: offset + 4), reader.contains(offset, length: 8) {
            if reader.has("EXIF", at: offset) || reader.has("XMP ", at: offset) { memory[offset] = UInt8(ascii: "x") }
            offset += 8 + length + length % 2
        }
    }
}
