internal import CVips
internal import Core
import ImageFiles
import Variants

/// TIFF and BigTIFF, by libtiff through libvips. TIFF 6.0.
struct TIFFFormat: FormatDefinition {
    let header: any FormatHeader = ImageFormat.tiff.header
    let loaderClass: String? = "VipsForeignLoadTiffSource"
    let saver: (any FormatSaver)? = TIFFSaver()

    func objection(_ reader: ByteReader, limits: ImageLimits) -> Failure? {
        TIFFColours(TIFFDirectory(reader)).objection
    }

    func endsEarly(_ reader: ByteReader) -> Bool { TIFFDirectory(reader).pointsPastTheEnd }

    func hasExtras(_ reader: ByteReader, _ policy: MetadataPolicy) -> Bool {
        !policy.keepsAll && TIFFTags.areExtra(in: reader, policy)
    }

    // MARK: - Loader

    func load(
        _ source: UnsafeMutablePointer<VipsSource>, _ scale: DecodeScale, isLenient: Bool,
        _ result: inout UnsafeMutablePointer<VipsImage>?,
    ) -> CInt { pw_vips_load_tiff(source, &result) }

    func completed(_ picture: Picture, _ bytes: UnsafeRawBufferPointer) throws(VipsFailure) -> Picture {
        try picture.unpacked()
            .inRGB(from: TIFFColours(TIFFDirectory(ByteReader(bytes))).yCbCr)
            .with(ExifBlock(bytes, where: { _ in true }).map(SourceExif.init), xmp: nil)
    }

    /// libtiff only warns of damaged JPEG data, and does not check the checksum of deflated data.
    func damage(after watch: DecodeWatch, _ loaded: Picture, _ bytes: UnsafeRawBufferPointer) -> Failure? {
        if watch.hasDamagedParts {
            return Failure(.badImage, "The tiff has damaged JPEG data.")
        }
        return TIFFDeflate(ByteReader(bytes))?.objection
    }

    let sample = """
        SUkqAB4AAAB4nDuRYsRACjgxqn5U/TBSDwDVfhXhEAAAAQMAAQAAABAAAAABAQMAAQAAABAAAAACAQMAAwAAAPQAAAADAQMAAQAAAAgA
        AAAGAQMAAQAAAAIAAAARAQQAAQAAAAgAAAASAQMAAQAAAAEAAAAVAQMAAQAAAAMAAAAWAQMAAQAAAIAAAAAXAQQAAQAAABYAAAAaAQUA
        AQAAAOQAAAAbAQUAAQAAAOwAAAAcAQMAAQAAAAEAAAAoAQMAAQAAAAMAAAA9AQMAAQAAAAIAAABTAQMAAwAAAPoAAAAAAAAACgAAAAEA
        AAAKAAAAAQAAAAgACAAIAAEAAQABAA==
        """
}

private struct TIFFSaver: FormatSaver {
    func save(_ picture: Picture, _ encoding: Encoding, to target: UnsafeMutablePointer<VipsTarget>) -> CInt {
        picture.lend { pw_vips_save_tiff($0, target, picture.strip) }
    }

    func file(of picture: Picture, _ encoding: Encoding) throws(VipsFailure) -> EncodedFile {
        let file = try EncodedFile { save(picture, encoding, to: $0) }
        return picture.exifBlock.flatMap { Self.file(file, with: $0) } ?? file
    }

    /// Appends the main directory again, with its tags and the added ones.
    private static func file(_ encoded: EncodedFile, with exif: ExifBlock) -> EncodedFile? {
        encoded.lend { file in
            let reader = ByteReader(file)
            guard reader.has([0x49, 0x49, 0x2A, 0], at: 0), let old = reader.little(4, at: 4),
                let count = reader.little(2, at: old), reader.contains(old, length: 2 + 12 * count)
            else { return nil }
            let present = (0..<count).map { index in
                let line = Array(file[(old + 2 + 12 * index)..<(old + 14 + 12 * index)])
                return (tag: UInt16(line[0]) | UInt16(line[1]) << 8, bytes: line)
            }
            // Directories must begin at even offsets.
            let padding = [UInt8](repeating: 0, count: file.count & 1)
            guard let place = UInt32(exactly: file.count + padding.count) else { return nil }
            return EncodedFile(
                encoded, replacingFirst: 8,
                by: Array(file[..<4]) + withUnsafeBytes(of: place.littleEndian) { Array($0) },
                tail: padding + exif.directory(at: Int(place), with: present))
        }
    }
}

extension Picture {
    /// libvips counts packed CIELAB of eight bits as four channels with an alpha.
    fileprivate func unpacked() throws(VipsFailure) -> Picture {
        lend { vips_image_get_coding($0) } == VIPS_CODING_LABQ ? try then { pw_vips_unpack_lab($0, &$1) } : self
    }

    /// - Parameter colours: how luma and its differences are stored; nil for other colours.
    fileprivate func inRGB(from colours: YCbCrColours?) throws(VipsFailure) -> Picture {
        guard let colours else { return self }
        let format = bandFormat
        // The directory says that there are three channels.
        guard bands == 3 else { throw VipsFailure.take() }
        return try then { pw_vips_mix($0, &$1, colours.factors, colours.constants) }
            .then { pw_vips_round($0, &$1, format) }
    }
}
