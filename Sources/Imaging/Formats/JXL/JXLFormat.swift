internal import CVips
internal import Core
import ImageFiles

/// JPEG XL, by libjxl: stills through libvips, animations directly. ISO/IEC 18181.
struct JXLFormat: FormatDefinition {
    let header: any FormatHeader = ImageFormat.jxl.header
    let libraries = ["vips", "jxl"]
    let loaderClass: String? = "VipsForeignLoadJxlSource"
    let saver: (any FormatSaver)? = JXLSaver()

    func animation(_ bytes: UnsafeRawBufferPointer) -> AnimationFacts? { JXLAnimation(bytes)?.facts }

    /// Of an animation of a single frame too, which libvips 8.14 does not deliver as a still.
    func frameCount(_ bytes: UnsafeRawBufferPointer) -> Int? { JXLAnimation(bytes)?.frames }

    func frames(
        _ bytes: UnsafeRawBufferPointer, limits: ImageLimits, isLenient: Bool,
    ) throws(Failure) -> (any FrameSource)? {
        try JXLFrameSource(bytes: bytes, limits: limits)
    }

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

    /// libvips 8.15 and later refuse a picture whose EXIF box has no valid offset. This renames the metadata boxes to `free`,
    /// which decoders skip.
    func hidingMetadata(_ file: UnsafeRawBufferPointer) -> PatchedBytes? {
        let reader = ByteReader(file)
        // A bare codestream has no boxes.
        guard reader.has("JXL ", at: 4) else { return nil }
        let copy = PatchedBytes(file)
        Boxes.each(in: 0..<file.count, reader) { name, _ in
            if ["Exif", "xml ", "brob"].contains(where: { reader.has($0, at: name) }) {
                copy.memory[name...].copyBytes(from: Array("free".utf8))
            }
            return true
        }
        return copy
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
