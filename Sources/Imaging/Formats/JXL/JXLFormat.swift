internal import CVips
internal import Core

/// JPEG XL, by libjxl: stills through libvips, the first frame of an animation directly. ISO/IEC 18181.
struct JXLFormat: FormatDefinition {
    let name = "jxl"
    let title = "JPEG XL"
    let loaderClass: String? = "VipsForeignLoadJxlSource"
    let saver: (any FormatSaver)? = JXLSaver()

    /// The signature of its container; bare codestreams begin with FF 0A. ISO/IEC 18181-2, 9.
    private static let signature: [UInt8] = [
        0x00, 0x00, 0x00, 0x0C, 0x4A, 0x58, 0x4C, 0x20, 0x0D, 0x0A, 0x87, 0x0A,
    ]

    func begins(_ reader: ByteReader) -> Bool {
        reader.has([0xFF, 0x0A], at: 0) || reader.has(Self.signature, at: 0)
    }

    func mayBegin(_ reader: ByteReader) -> Bool { false }

    func size(_ reader: ByteReader) -> HeaderFinding? {
        JXLHeader.size(reader).map { .size(width: $0.width, height: $0.height) }
    }

    func cost(_ reader: ByteReader, limits: ImageLimits) -> DecoderCost { DecoderCost(JXLHeader.size(reader), each: 8) }

    /// A bare codestream does not state its length, so if its decoder calls it incomplete, it was cut.
    func endsEarly(_ reader: ByteReader) -> Bool { reader.has([0xFF, 0x0A], at: 0) || Boxes.endEarly(reader) }

    func frameCount(_ bytes: UnsafeRawBufferPointer) -> Int? { JXLAnimation(bytes)?.frames }

    func hasExtras(_ reader: ByteReader, _ policy: MetadataPolicy) -> Bool {
        // A bare codestream contains only the picture.
        guard reader.has("JXL ", at: 4) else { return false }
        let picture = ["JXL ", "ftyp", "jxll", "jxlc", "jxlp", "jxli"]
        return Boxes.areThere(reader, besides: policy.keepsAll ? picture + ["Exif", "xml "] : picture)
    }

    // MARK: - Loader

    func load(
        _ source: UnsafeMutablePointer<VipsSource>, _ scale: DecodeScale, isLenient: Bool,
        _ result: inout UnsafeMutablePointer<VipsImage>?,
    ) -> CInt { pw_vips_load_jxl(source, &result) }

    func completed(_ picture: Picture, _ bytes: UnsafeRawBufferPointer) throws(VipsFailure) -> Picture {
        // A bare codestream has no boxes.
        guard ByteReader(bytes).has("JXL ", at: 4) else { return picture }
        let exif = Self.box("Exif", bytes).flatMap { ExifBlock($0) { _ in true } }
        return try picture.with(exif.map(SourceExif.init), xmp: Self.box("xml ", bytes))
    }

    private static func box(_ name: StaticString, _ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        Boxes.box(name, in: 0..<bytes.count, ByteReader(bytes)).map { UnsafeRawBufferPointer(rebasing: bytes[$0]) }
    }

    /// libvips delivers the last frame of an animation.
    func firstFrame(_ file: OpenedFrames) throws(Failure) -> Picture? {
        guard let count = file.count else { return nil }
        let first = try JXLAnimation(file.bytes, frames: count).firstFrame(file.limits)
        do throws(VipsFailure) {
            let seen = file.header.hasAlpha ? first : try first.then { pw_vips_first_bands($0, &$1, 3) }
            seen.takeMetadata(of: file.header)
            return seen
        } catch {
            throw error.error(.transform, "The jxl could not be scaled")
        }
    }

    /// libvips does not distinguish truncated from damaged files.
    func failure(_ bytes: UnsafeRawBufferPointer) -> Failure? { JXLAnimation.objection(to: bytes, ImageLimits()) }

    let sample = """
        /wpDBgHQAJNhCQCACpVRxg1ezvV8+aHDYtrGdYa22rawhLHZXhgkJJwg3tZd0jwyDg32hgJDEQUqSQA=
        """
}

private struct JXLSaver: FormatSaver {
    func bytesPerPixel(_ encoding: Encoding, effort: Int) -> Int {
        encoding.isLossless ? effort <= 3 ? 113 : 150 : effort <= 3 ? 72 : effort <= 7 ? 96 : 150
    }

    func usualEffort(pixels: Int) -> Int { pixels > Self.largePicture ? 3 : 7 }

    /// Pixels from which effort 3 is used, which needs half of the memory: see ``EncoderMemory``.
    private static let largePicture = 8_000_000

    /// Below this quality libvips asks libjxl for a distance above 25, which libjxl refuses, and the file has the
    /// default's size.
    private static let lowestQuality = 5

    func save(_ picture: Picture, _ encoding: Encoding, to target: UnsafeMutablePointer<VipsTarget>) -> CInt {
        let quality = CInt(max(encoding.quality, Self.lowestQuality))
        let effort = encoding.effort(for: picture)
        return picture.lend {
            pw_vips_save_jxl($0, target, quality, effort, encoding.losesNothing, picture.strip)
        }
    }

    func file(of picture: Picture, _ encoding: Encoding) throws(VipsFailure) -> EncodedFile {
        let file = try EncodedFile { save(picture, encoding, to: $0) }
        let exif = picture.exifBlock
        let xmp = picture.withBlob(VIPS_META_XMP_NAME) { Array($0) }
        return exif == nil && xmp == nil ? file : Self.file(file, exif?.bytes, xmp)
    }

    /// ISO/IEC 18181-2: a signature, the file type, and boxes around the codestream. The EXIF box begins with the
    /// offset of its header.
    private static func file(_ encoded: EncodedFile, _ exif: [UInt8]?, _ xmp: [UInt8]?) -> EncodedFile {
        let boxes =
            (exif.map { Self.box("Exif", [0, 0, 0, 0] + $0) } ?? []) + (xmp.map { Self.box("xml ", $0) } ?? [])
        // Further boxes can be appended to a file that has boxes already.
        guard encoded.lend({ ByteReader($0).has([0xFF, 0x0A], at: 0) }) else {
            return EncodedFile(encoded, by: [], tail: boxes)
        }
        let signature = Self.box("JXL ", [0x0D, 0x0A, 0x87, 0x0A])
        let type = Self.box("ftyp", Array("jxl ".utf8) + [0, 0, 0, 0] + Array("jxl ".utf8))
        return EncodedFile(encoded, by: signature + type + boxes + Self.boxHeader("jxlc", encoded.count))
    }

    private static func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
        boxHeader(name, content.count) + content
    }

    private static func boxHeader(_ name: String, _ count: Int) -> [UInt8] {
        withUnsafeBytes(of: UInt32(8 + count).bigEndian) { Array($0) } + Array(name.utf8)
    }
}

/// The size of a JPEG XL, from the first bits of its codestream.
///
/// ISO/IEC 18181-1, D.2 (SizeHeader): numbers with as few bits as they need, the least significant first. ISO/IEC
/// 18181-2 for the boxes around it.
enum JXLHeader {
    /// As stored. Nil if the codestream has not come yet.
    static func size(_ reader: ByteReader) -> PixelSize? {
        guard let start = codestream(reader), reader.has([0xFF, 0x0A], at: start) else { return nil }
        var bits = Bits(reader: reader, next: (start + 2) * 8)
        guard let isSmall = bits.take(1), let height = side(isSmall == 1, &bits), let ratio = bits.take(3) else {
            return nil
        }
        guard ratio > 0 else {
            return side(isSmall == 1, &bits).map { PixelSize(width: $0, height: height) }
        }
        let (across, down) = ratios[ratio - 1]
        return PixelSize(width: height * across / down, height: height)
    }

    /// Width to height, by their number in the header, from 1.
    private static let ratios = [(1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1)]

    private static func side(_ isSmall: Bool, _ bits: inout Bits) -> Int? {
        if isSmall { return bits.take(5).map { ($0 + 1) * 8 } }
        guard let choice = bits.take(2) else { return nil }
        return bits.take([9, 13, 18, 30][choice]).map { $0 + 1 }
    }

    /// Where the codestream begins: at the start, or in a box of the container.
    private static func codestream(_ reader: ByteReader) -> Int? {
        if reader.has([0xFF, 0x0A], at: 0) { return 0 }
        var start: Int?
        Boxes.each(in: 0..<reader.count, reader) { offset, content in
            if reader.has("jxlc", at: offset) { start = content.lowerBound }
            // A partial codestream begins with its number.
            if reader.has("jxlp", at: offset) { start = content.lowerBound + 4 }
            return start == nil
        }
        return start
    }

    private struct Bits {
        let reader: ByteReader
        var next: Int

        mutating func take(_ count: Int) -> Int? {
            var value = 0
            for place in 0..<count {
                guard let byte = reader.byte(at: next / 8) else { return nil }
                value |= Int(byte >> UInt8(next % 8) & 1) << place
                next += 1
            }
            return value
        }
    }
}
