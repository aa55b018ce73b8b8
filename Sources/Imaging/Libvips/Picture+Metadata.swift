internal import CVips
import ImageFiles
import Variants

/// The source's metadata that a variant keeps.
struct MetadataPolicy: Hashable {
    /// EXIF, XMP and IPTC.
    var keepsAll: Bool
    /// Artist and Copyright.
    var keepsCopyright: Bool
    /// The colour profile.
    var keepsProfile: Bool

    init(_ options: VariantOptions) {
        keepsAll = options.flag(.keepMetadata)
        keepsCopyright = !options.flag(.stripCopyright)
        keepsProfile = options.flag(.keepProfile)
    }
}

extension Picture {
    /// Whether an encoder would write anything besides pixels.
    var hasMetadata: Bool { metadataFields.contains { Self.written.contains($0) || Self.copyright.contains($0) } }

    /// Whether there are texts, which only PNG stores.
    var hasTexts: Bool { metadataFields.contains { $0.hasPrefix("png-comment-") } }

    fileprivate static let written = [VIPS_META_EXIF_NAME, VIPS_META_XMP_NAME, VIPS_META_IPTC_NAME, VIPS_META_ICC_NAME]

    /// EXIF's names for Artist and Copyright: kept unless a variant says otherwise, since the law forbids removing them
    /// in many countries.
    fileprivate static let copyright = CopyrightBlock.tags.map(\.name)

    /// libvips' names for all metadata of the picture.
    var metadataFields: [String] {
        guard let fields = lend({ vips_image_get_fields($0) }) else { return [] }
        defer { g_strfreev(fields) }
        var names: [String] = []
        var next = fields
        while let name = next.pointee {
            names.append(String(cString: name))
            next += 1
        }
        return names
    }

    /// - Parameter isUnwanted: called for each name. Names that are not valid text are removed, since no encoder
    ///   accepts them.
    private func removeFields(where isUnwanted: (String) -> Bool) {
        guard let fields = lend({ vips_image_get_fields($0) }) else { return }
        defer { g_strfreev(fields) }
        var next = fields
        while let raw = next.pointee {
            if String(validatingCString: raw).map(isUnwanted) ?? true { _ = lend { vips_image_remove($0, raw) } }
            next += 1
        }
    }

    /// libvips' savers of JPEG, PNG and WebP refuse a larger block.
    private static let largestExif = 1 << 20

    /// Whether it is a PNG text whose key PNG's encoder would refuse; the encoder is stricter than the decoder.
    ///
    /// W3C PNG, 11.3.3.1: 1 to 79 visible characters with single spaces between them; here only ASCII.
    private static func isUnwritable(_ name: String) -> Bool {
        guard name.hasPrefix("png-comment-") else { return false }
        let key = name.utf8.dropFirst("png-comment-".utf8.count).drop { $0 != UInt8(ascii: "-") }.dropFirst()
        return !(1...79).contains(key.count) || !key.allSatisfy { (32...126).contains($0) } || key.first == 32
            || key.last == 32 || name.contains("  ")
    }

    /// The same pixels with no more metadata than `policy` allows.
    func withMetadata(_ policy: MetadataPolicy) throws(VipsFailure) -> Picture {
        let picture = try then { pw_vips_copy($0, &$1) }
        // Encoders fail if the block is invalid or too large.
        let isFit = withBlob(VIPS_META_EXIF_NAME) { $0.count <= Self.largestExif && ExifBlock.isBlock($0) }
        if isFit == false {
            picture.removeFields { $0 == VIPS_META_EXIF_NAME }
        }
        picture.removeFields { policy.forbids($0) || Self.isUnwritable($0) }
        if isFit == false || !policy.keepsAll, policy.keepsCopyright, let block = CopyrightBlock(text) {
            picture.set(exif: block.bytes)
        }
        return picture
    }

    /// Whether `policy` would remove no metadata and convert no colours.
    func isWithin(_ policy: MetadataPolicy) -> Bool {
        guard policy.keepsProfile || bandFormat == VIPS_FORMAT_UCHAR && interpretation != VIPS_INTERPRETATION_CMYK
        else {
            return false
        }
        return !metadataFields.contains(where: policy.forbids)
    }

    func takeExif(of other: Picture) {
        other.withBlob(VIPS_META_EXIF_NAME) { set(VIPS_META_EXIF_NAME, to: $0) }
        // The orientation is stored elsewhere.
        for name in other.metadataFields where name.hasPrefix("exif-ifd") && name != "exif-ifd0-Orientation" {
            var value = GValue()
            guard other.lend({ vips_image_get($0, name, &value) }) == 0 else { continue }
            lend { vips_image_set($0, name, &value) }
            g_value_unset(&value)
        }
    }

    /// Adds EXIF and XMP if there is none yet. Only for a picture from which no other one was made.
    func takeMetadata(of other: Picture) {
        takeExif(of: other)
        other.withBlob(VIPS_META_XMP_NAME) { set(VIPS_META_XMP_NAME, to: $0) }
    }

    func set(_ name: String, to blob: UnsafeRawBufferPointer) {
        lend { vips_image_set_blob_copy($0, name, blob.baseAddress, blob.count) }
    }
}

extension MetadataPolicy {
    fileprivate func forbids(_ name: String) -> Bool {
        if name == VIPS_META_ICC_NAME { return !keepsProfile }
        if Picture.copyright.contains(name) { return !keepsCopyright }
        if Self.namesAuthor(name) { return !keepsCopyright || !keepsAll }
        if keepsAll { return false }
        if Picture.written.contains(name) { return true }
        return name.hasPrefix("exif-") || name.hasPrefix("png-comment")
            || name == VIPS_META_IMAGEDESCRIPTION || name == "jpeg-thumbnail-data"
    }

    /// Whether it is a PNG's text with the artist, the author or the copyright, or with a whole EXIF block, as some
    /// programs write it. libvips' name for a text is `png-comment-`, the text's number, and its key.
    private static func namesAuthor(_ name: String) -> Bool {
        guard name.hasPrefix("png-comment-") else { return false }
        let key = name.split(separator: "-", maxSplits: 3).last?.lowercased() ?? ""
        return ["artist", "author", "copyright", "raw profile type exif", "raw profile type app1"].contains(key)
    }
}
