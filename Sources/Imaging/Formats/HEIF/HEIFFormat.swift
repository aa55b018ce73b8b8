internal import CVips
internal import Core
import ImageFiles
import Variants

/// HEIC and AVIF: stills by libheif through libvips, animated AVIF by libavif. ISO/IEC 23008-12.
struct HEIFFormat: FormatDefinition {
    let header: any FormatHeader
    let saver: (any FormatSaver)?
    let libraries: [String]
    let sample: String
    let loaderClass: String? = "VipsForeignLoadHeifSource"
    let usesPlugins = true

    static let heic = HEIFFormat(
        header: ImageFormat.heic.header, saver: HEIFSaver(format: .heic), libraries: ["vips"], sample: heicSample)
    static let avif = HEIFFormat(
        header: ImageFormat.avif.header, saver: HEIFSaver(format: .avif), libraries: ["vips", "avif"],
        sample: avifSample)

    func objection(_ reader: ByteReader, limits: ImageLimits) -> Failure? {
        HEIFBoxes(reader).objection(limits)
    }

    /// libheif 1.15 reads only the default picture of a HEIC with several.
    func animation(_ bytes: UnsafeRawBufferPointer) -> AnimationFacts? {
        name == "avif" ? AnimationFacts(avif: bytes) : nil
    }

    func frames(
        _ bytes: UnsafeRawBufferPointer, limits: ImageLimits, isLenient: Bool,
    ) throws(Failure) -> (any FrameSource)? {
        name == "avif" ? try AVIFFrameSource.upright(bytes, limits: limits) : nil
    }

    func hasExtras(_ reader: ByteReader, _ policy: MetadataPolicy) -> Bool { HEIFItems.areExtra(in: reader, policy) }

    func hidingMetadata(_ file: UnsafeRawBufferPointer) -> PatchedBytes? { HEIFItems.hidden(in: file) }

    // MARK: - Loader

    func load(
        _ source: UnsafeMutablePointer<VipsSource>, _ scale: DecodeScale, isLenient: Bool,
        _ result: inout UnsafeMutablePointer<VipsImage>?,
    ) -> CInt { pw_vips_load_heif(source, &result) }

    func completed(_ picture: Picture, _ bytes: UnsafeRawBufferPointer) throws(VipsFailure) -> Picture {
        try picture.owningItsBlobs().unpremultiplied(if: HEIFReferences(ByteReader(bytes)).isPremultiplied)
    }

    private static let heicSample = """
        AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAa1tZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAAAA5w
        aXRtAAAAAAACAAAAEGlkYXQAAAAAABAAEAAAADhpbG9jAQAAAERAAAIAAQAAAAAAAAHRAAEAAAAAAAAAMgACAAEAAAAAAAAAAQAAAAAA
        AAAIAAAAOGlpbmYAAAAAAAIAAAAVaW5mZQIAAAEAAQAAaHZjMQAAAAAVaW5mZQIAAAAAAgAAZ3JpZAAAAADYaXBycAAAALZpcGNvAAAA
        dmh2Y0MBA3AAAAAAAAAAAAAe8AD8/fj4AAAPAyAAAQAYQAEMAf//A3AAAAMAkAAAAwAAAwAeugJAIQABACpCAQEDcAAAAwCQAAADAAAD
        AB6gIIEFluqumubgQEDAgAAAAwCAAAADAIQiAAEABkQBwXPBiQAAABRpc3BlAAAAAAAAAEAAAABAAAAAFGlzcGUAAAAAAAAAEAAAABAA
        AAAQcGl4aQAAAAADCAgIAAAAGmlwbWEAAAAAAAAAAgABAoECAAICA4QAAAAaaXJlZgAAAAAAAAAOZGltZwACAAEAAQAAADptZGF0AAAA
        LigBrxMhYmNA9Sci//fkn/yHuf8XdlhZ3K6AwVvy+sD2ZJvA86qRnoCHaacwFXg=
        """

    private static let avifSample = """
        AAAAHGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZgAAAOptZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAAAA5w
        aXRtAAAAAAABAAAAImlsb2MAAAAAREAAAQABAAAAAAEOAAEAAAAAAAAAHQAAACNpaW5mAAAAAAABAAAAFWluZmUCAAAAAAEAAGF2MDEA
        AAAAamlwcnAAAABLaXBjbwAAABNjb2xybmNseAACAAIABoAAAAAMYXYxQ4EADAAAAAAUaXNwZQAAAAAAAAAQAAAAEAAAABBwaXhpAAAA
        AAMICAgAAAAXaXBtYQAAAAAAAAABAAEEgYIDhAAAACVtZGF0EgAKCRgM/9ggQEDQgDIOGAAAAFACmeBBaCUh4oA=
        """
}

extension Picture {
    /// Copies the metadata that the HEIC loader only lends: it is freed with the opened picture, although pictures made from
    /// that still refer to it.
    fileprivate func owningItsBlobs() throws(VipsFailure) -> Picture {
        let copy = try then { pw_vips_copy($0, &$1) }
        for name in metadataFields where lend({ vips_image_get_typeof($0, name) == vips_blob_get_type() }) {
            withBlob(name) { blob in
                copy.set(name, to: blob)
                if name.hasPrefix("heif-mime-"), Self.isXMP(blob) { copy.set(VIPS_META_XMP_NAME, to: blob) }
            }
        }
        return copy
    }

    /// Divides the colours by the alpha if they are premultiplied.
    fileprivate func unpremultiplied(if isPremultiplied: Bool) throws(VipsFailure) -> Picture {
        guard isPremultiplied, hasAlpha else { return self }
        let format = bandFormat
        return try then { pw_vips_unpremultiply($0, &$1) }.then { pw_vips_round($0, &$1, format) }
    }

    private static func isXMP(_ blob: UnsafeRawBufferPointer) -> Bool {
        let reader = ByteReader(blob)
        return reader.has("<?xpacket", at: 0) || reader.has("<x:xmpmeta", at: 0)
    }
}
