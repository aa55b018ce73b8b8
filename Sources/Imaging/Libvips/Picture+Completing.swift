internal import CVips

// What libvips 8.14 leaves undone when it opens a file.

extension Picture {
    /// - Parameter image: as it was opened; replaced by one that has all it should.
    static func complete(
        _ image: inout UnsafeMutablePointer<VipsImage>?, _ bytes: UnsafeRawBufferPointer, _ format: ImageFormat,
    ) -> CInt {
        let opened = image
        image = nil
        do throws(VipsFailure) {
            let picture = try Picture { result in
                result = opened
                return 0
            }
            let completed =
                switch format {
                case .heic, .avif:
                    try picture.owningItsBlobs()
                        .unpremultiplied(if: HEIFReferences(ByteReader(bytes)).isPremultiplied)
                case .tiff:
                    try picture.unpacked()
                        .inRGB(from: TIFFColours(TIFFDirectory(ByteReader(bytes))).yCbCr)
                        .with(SourceExif(bytes, format), xmp: nil)
                case .jxl: try picture.with(SourceExif(bytes, format), xmp: xmp(in: bytes))
                case .jpeg, .png, .webp, .gif, .bmp: picture
                }
            image = completed.lend { UnsafeMutablePointer(g_object_ref($0).assumingMemoryBound(to: VipsImage.self)) }
            return 0
        } catch {
            return -1
        }
    }

    /// CIELAB of eight bits comes packed, which counts as four channels and an alpha.
    private func unpacked() throws(VipsFailure) -> Picture {
        lend { vips_image_get_coding($0) } == VIPS_CODING_LABQ ? try then { pw_vips_unpack_lab($0, &$1) } : self
    }

    /// - Parameter colours: how luma and its differences are stored; nil where these are none.
    private func inRGB(from colours: YCbCrColours?) throws(VipsFailure) -> Picture {
        guard let colours else { return self }
        let format = bandFormat
        // As the directory says.
        guard bands == 3 else { throw VipsFailure.take() }
        return try then { pw_vips_mix($0, &$1, colours.factors, colours.constants) }
            .then { pw_vips_round($0, &$1, format) }
    }

    /// What its HEIC loader lends ends with the opened picture, and not with those that were made from it.
    private func owningItsBlobs() throws(VipsFailure) -> Picture {
        let copy = try then { pw_vips_copy($0, &$1) }
        for name in metadataFields where lend({ vips_image_get_typeof($0, name) == vips_blob_get_type() }) {
            withBlob(name) { blob in
                copy.set(name, to: blob)
                if name.hasPrefix("heif-mime-"), Self.isXMP(blob) { copy.set(VIPS_META_XMP_NAME, to: blob) }
            }
        }
        return copy
    }

    /// With the colours that its pixels have before they are multiplied with their alpha.
    private func unpremultiplied(if isPremultiplied: Bool) throws(VipsFailure) -> Picture {
        guard isPremultiplied, hasAlpha else { return self }
        let format = bandFormat
        return try then { pw_vips_unpremultiply($0, &$1) }.then { pw_vips_round($0, &$1, format) }
    }

    private static func isXMP(_ blob: UnsafeRawBufferPointer) -> Bool {
        let reader = ByteReader(blob)
        return reader.has("<?xpacket", at: 0) || reader.has("<x:xmpmeta", at: 0)
    }

    /// Of a JPEG XL.
    private static func xmp(in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        let reader = ByteReader(bytes)
        guard reader.has("JXL ", at: 4) else { return nil }
        let box = HEIFBoxes.box("xml ", in: 0..<reader.count, reader)
        return box.map { UnsafeRawBufferPointer(rebasing: bytes[$0]) }
    }

    private func with(_ exif: SourceExif?, xmp: UnsafeRawBufferPointer?) throws(VipsFailure) -> Picture {
        if exif == nil, xmp == nil { return self }
        let copy = try then { pw_vips_copy($0, &$1) }
        if withBlob(VIPS_META_EXIF_NAME, { _ in true }) == nil { exif?.lend { copy.takeExif(of: $0) } }
        if let xmp, withBlob(VIPS_META_XMP_NAME, { _ in true }) == nil { copy.set(VIPS_META_XMP_NAME, to: xmp) }
        return copy
    }

    private func takeExif(of other: Picture) {
        other.withBlob(VIPS_META_EXIF_NAME) { set(VIPS_META_EXIF_NAME, to: $0) }
        // How the picture is turned is said elsewhere.
        for name in other.metadataFields where name.hasPrefix("exif-ifd") && name != "exif-ifd0-Orientation" {
            var value = GValue()
            guard other.lend({ vips_image_get($0, name, &value) }) == 0 else { continue }
            lend { vips_image_set($0, name, &value) }
            g_value_unset(&value)
        }
    }

    /// EXIF and XMP, where there is none yet. Of pictures that nobody else has yet.
    func takeMetadata(of other: Picture) {
        takeExif(of: other)
        other.withBlob(VIPS_META_XMP_NAME) { set(VIPS_META_XMP_NAME, to: $0) }
    }

    func set(_ name: String, to blob: UnsafeRawBufferPointer) {
        lend { vips_image_set_blob_copy($0, name, blob.baseAddress, blob.count) }
    }
}

/// The EXIF of a TIFF, whose main directory has its tags, or of a JPEG XL in boxes.
private struct SourceExif {
    /// Another picture, of which libvips reads it and all its fields.
    private let file: [UInt8]

    /// Nil where there is none.
    init?(_ bytes: UnsafeRawBufferPointer, _ format: ImageFormat) {
        guard let block = format == .jxl ? Self.box(in: bytes) : ExifBlock(bytes, where: { _ in true }) else {
            return nil
        }
        file = Self.webP(with: block.bytes)
    }

    func lend(_ body: (Picture) -> Void) {
        file.withUnsafeBytes { bytes in
            // No picture is refused for tags that libexif can't make sense of.
            if let picture = try? Picture(of: bytes, as: .webp) { body(picture) }
        }
    }

    private static func box(in bytes: UnsafeRawBufferPointer) -> ExifBlock? {
        let reader = ByteReader(bytes)
        // A bare codestream has no boxes.
        guard reader.has("JXL ", at: 4), let box = HEIFBoxes.box("Exif", in: 0..<reader.count, reader) else {
            return nil
        }
        return ExifBlock(UnsafeRawBufferPointer(rebasing: bytes[box])) { _ in true }
    }

    /// A small picture with the block: its container has no limit that a block could pass.
    private static func webP(with block: [UInt8]) -> [UInt8] {
        let pixels = SampleImage.bytes(of: .webp).dropFirst(12)
        let padding = [UInt8](repeating: 0, count: block.count & 1)
        let header: [UInt8] = [8, 0, 0, 0, 15, 0, 0, 15, 0, 0]
        let body =
            Array("WEBPVP8X".utf8) + little(header.count) + header + pixels + Array("EXIF".utf8) + little(block.count)
            + block + padding
        return Array("RIFF".utf8) + little(body.count) + body
    }

    private static func little(_ number: Int) -> [UInt8] {
        withUnsafeBytes(of: UInt32(truncatingIfNeeded: number).littleEndian) { Array($0) }
    }
}
