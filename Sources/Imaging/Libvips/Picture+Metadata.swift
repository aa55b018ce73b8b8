internal import CVips
import Variants

/// What of a source's metadata goes into a variant.
struct MetadataPolicy: Hashable {
    /// EXIF, XMP and IPTC.
    var keepsAll: Bool
    /// Whose picture it is.
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
    /// Whether there is anything an encoder would write besides pixels.
    var hasMetadata: Bool { metadataFields.contains { Self.written.contains($0) || Self.copyright.contains($0) } }

    /// Texts, which only a PNG holds.
    var hasTexts: Bool { metadataFields.contains { $0.hasPrefix("png-comment-") } }

    fileprivate static let written = [VIPS_META_EXIF_NAME, VIPS_META_XMP_NAME, VIPS_META_IPTC_NAME, VIPS_META_ICC_NAME]

    /// EXIF's names of whose picture it is: kept unless a variant says otherwise, since taking them off is forbidden in
    /// many places.
    fileprivate static let copyright = CopyrightBlock.tags.map(\.name)

    /// libvips' names for all that it knows of the picture.
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

    /// - Parameter isUnwanted: asked for each by its name. Names that are no text are removed: no encoder takes them.
    private func removeFields(where isUnwanted: (String) -> Bool) {
        guard let fields = lend({ vips_image_get_fields($0) }) else { return }
        defer { g_strfreev(fields) }
        var next = fields
        while let raw = next.pointee {
            if String(validatingCString: raw).map(isUnwanted) ?? true { _ = lend { vips_image_remove($0, raw) } }
            next += 1
        }
    }

    /// Whether it is a PNG's text whose key PNG's encoder would refuse, which is stricter than its decoder.
    ///
    /// W3C PNG, 11.3.3.1: 1 to 79 characters that can be seen, with single spaces between; here of ASCII.
    private static func isUnwritable(_ name: String) -> Bool {
        guard name.hasPrefix("png-comment-") else { return false }
        let key = name.utf8.dropFirst("png-comment-".utf8.count).drop { $0 != UInt8(ascii: "-") }.dropFirst()
        return !(1...79).contains(key.count) || !key.allSatisfy { (32...126).contains($0) } || key.first == 32
            || key.last == 32 || name.contains("  ")
    }

    /// The same pixels with no more metadata than `policy` allows.
    func withMetadata(_ policy: MetadataPolicy) throws(VipsFailure) -> Picture {
        let picture = try then { pw_vips_copy($0, &$1) }
        // Encoders that add to a block give up where it is none.
        if let isExif = withBlob(VIPS_META_EXIF_NAME, ExifBlock.isBlock), !isExif {
            picture.removeFields { $0 == VIPS_META_EXIF_NAME }
        }
        picture.removeFields { policy.forbids($0) || Self.isUnwritable($0) }
        if !policy.keepsAll, policy.keepsCopyright, let block = CopyrightBlock(text) { picture.set(exif: block.bytes) }
        return picture
    }

    /// Whether there is no metadata that `policy` would take off, and no colours it would change.
    func isWithin(_ policy: MetadataPolicy) -> Bool {
        guard policy.keepsProfile || bandFormat == VIPS_FORMAT_UCHAR && interpretation != VIPS_INTERPRETATION_CMYK
        else {
            return false
        }
        return !metadataFields.contains(where: policy.forbids)
    }

    func takeExif(of other: Picture) {
        other.withBlob(VIPS_META_EXIF_NAME) { set(VIPS_META_EXIF_NAME, to: $0) }
        // How the picture is turned is said elsewhere.
        for name in other.metadataFields where name.hasPrefix("exif-ifd") && name != "exif-ifd0-Orientation" {
            var value = GValue()
            guard other.lend({ vips_image_get($0, name, &value) }) == 0 else { continue }
            lend { vips_image_set($0, name, &value) }
            g_value_unset(&value)
        }
    }

    /// EXIF and XMP, where there is none yet. Only for a picture that no other one was made from.
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
        if Self.saysWhose(name) { return !keepsCopyright || !keepsAll }
        if keepsAll { return false }
        if Picture.written.contains(name) { return true }
        return name.hasPrefix("exif-") || name.hasPrefix("png-comment")
            || name == VIPS_META_IMAGEDESCRIPTION || name == "jpeg-thumbnail-data"
    }

    /// Of a PNG's texts, which libvips calls `png-comment-`, their number, and their key: those that EXIF has tags for,
    /// and EXIF itself, as some programs write it.
    private static func saysWhose(_ name: String) -> Bool {
        guard name.hasPrefix("png-comment-") else { return false }
        let key = name.split(separator: "-", maxSplits: 3).last?.lowercased() ?? ""
        return ["artist", "author", "copyright", "raw profile type exif", "raw profile type app1"].contains(key)
    }
}
