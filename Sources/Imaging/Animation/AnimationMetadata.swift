internal import CVips

/// What an animation keeps of its source's metadata, as a still of the same source would.
struct AnimationMetadata {
    /// An ICC profile that frames weren't converted from; empty for none, as the others.
    private(set) var profile: [UInt8] = []
    /// The directory of tags, without the word before it.
    private(set) var exif: [UInt8] = []
    private(set) var xmp: [UInt8] = []
    /// Whose picture it is, for a format that has no tags.
    private(set) var comment: String?

    init() {}

    /// What a GIF holds of a picture whose metadata are no more than may stay.
    init(ofPlain picture: Picture) {
        comment = CopyrightBlock(picture.text)?.comment
        xmp = picture.withBlob(VIPS_META_XMP_NAME) { Array($0) } ?? []
    }

    /// - Parameter picture: of the source, freshly opened: its first pixel is asked for.
    init(of picture: Picture, _ policy: MetadataPolicy) throws(VipsFailure) {
        let kept = try picture.withMetadata(policy)
        guard kept.hasMetadata else { return }
        if policy.keepsCopyright { comment = CopyrightBlock(picture.text)?.comment }
        // What libvips writes is what stills have: without what was forbidden, and upright.
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

    /// Tags that can't be read can't be written either, and nobody misses them.
    private static func file(of sample: Picture) throws(VipsFailure) -> EncodedFile {
        let encoding = Encoding(.webp, quality: nil, VariantOptions())
        do {
            return try sample.encoded(encoding)
        } catch {
            let rest = try sample.then { pw_vips_copy($0, &$1) }
            _ = rest.lend { vips_image_remove($0, VIPS_META_EXIF_NAME) }
            return try rest.encoded(encoding)
        }
    }
}
