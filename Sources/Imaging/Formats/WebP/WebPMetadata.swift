internal import CVips
import ImageFiles
import Variants

extension AnimationMetadata {
    /// - Parameter picture: the source, freshly opened, since its first pixel is read.
    init(of picture: Picture, _ policy: MetadataPolicy) throws(VipsFailure) {
        self.init()
        let kept = try picture.withMetadata(policy)
        guard kept.hasMetadata else { return }
        if policy.keepsCopyright { comment = CopyrightBlock(picture.text)?.comment }
        // libvips writes the metadata of a still: without the forbidden ones, and upright.
        let sample = try kept.then { pw_vips_crop($0, &$1, 0, 0, 1, 1) }.upright()
        try Self.file(of: sample).lend { file in
            for chunk in WebPChunk.all(in: file) {
                switch chunk.name {
                case "ICCP" where ColourProfile(chunk.payload).isOfRGB: profile = Array(chunk.payload)
                case "EXIF": exif = Array(chunk.payload)
                case "XMP ": xmp = Array(chunk.payload)
                default: break
                }
            }
        }
    }

    /// Tags that cannot be read cannot be written either, and are left out.
    private static func file(of sample: Picture) throws(VipsFailure) -> EncodedFile {
        let encoding = Encoding(.webp, WebPSaver(), quality: nil, VariantOptions())
        do {
            return try sample.encoded(encoding)
        } catch {
            let rest = try sample.then { pw_vips_copy($0, &$1) }
            _ = rest.lend { vips_image_remove($0, VIPS_META_EXIF_NAME) }
            return try rest.encoded(encoding)
        }
    }
}

/// The EXIF tags of a TIFF's main directory, or of a JPEG XL's box.
struct SourceExif {
    /// Another picture, from which libvips reads the block and all its fields.
    private let file: [UInt8]

    init(_ block: ExifBlock) { file = Self.webP(with: block.bytes) }

    func lend(_ body: (Picture) -> Void) {
        file.withUnsafeBytes { bytes in
            // Best effort: tags that libexif cannot read are no reason to refuse a picture.
            if let picture = try? Picture(of: bytes, as: WebPFormat()) { body(picture) }
        }
    }

    /// A small picture with the block; its container has no limit that a block could exceed.
    private static func webP(with block: [UInt8]) -> [UInt8] {
        let pixels = WebPFormat().sampleBytes.dropFirst(12)
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

extension Picture {
    /// With the metadata of its file that libvips 8.14 does not read.
    func with(_ exif: SourceExif?, xmp: UnsafeRawBufferPointer?) throws(VipsFailure) -> Picture {
        if exif == nil, xmp == nil { return self }
        let copy = try then { pw_vips_copy($0, &$1) }
        if withBlob(VIPS_META_EXIF_NAME, { _ in true }) == nil { exif?.lend { copy.takeExif(of: $0) } }
        if let xmp, withBlob(VIPS_META_XMP_NAME, { _ in true }) == nil { copy.set(VIPS_META_XMP_NAME, to: xmp) }
        return copy
    }
}
