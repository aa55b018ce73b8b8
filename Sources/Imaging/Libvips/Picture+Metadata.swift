internal import CVips

/// What of a source's metadata goes into a variant.
struct MetadataPolicy: Hashable {
    /// EXIF, XMP and IPTC.
    var keepsAll: Bool
    /// The colour profile.
    var keepsProfile: Bool

    init(_ options: EncodingOptions) {
        keepsAll = options.flag(.keepMetadata)
        keepsProfile = options.flag(.keepProfile)
    }
}

extension Picture {
    /// Whether there is anything an encoder would write besides pixels.
    var hasMetadata: Bool { metadataFields.contains { Self.written.contains($0) || Self.copyright.contains($0) } }

    private static let written = [VIPS_META_EXIF_NAME, VIPS_META_XMP_NAME, VIPS_META_IPTC_NAME, VIPS_META_ICC_NAME]

    /// EXIF's names of whose picture it is: kept always, since taking them off is forbidden in many places.
    private static let copyright = ["exif-ifd0-Copyright", "exif-ifd0-Artist"]

    private var metadataFields: [String] {
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

    /// The same pixels with no more metadata than `policy` allows; whose picture it is always stays.
    func withMetadata(_ policy: MetadataPolicy) throws(VipsFailure) -> Picture {
        let picture = try then { pw_vips_copy($0, &$1) }
        let unwanted = metadataFields.filter { name in
            if name == VIPS_META_ICC_NAME { return !policy.keepsProfile }
            if policy.keepsAll { return false }
            if Self.written.contains(name) { return true }
            return name.hasPrefix("exif-") && !Self.copyright.contains(name) || name.hasPrefix("png-comment")
                || name == VIPS_META_IMAGEDESCRIPTION || name == "jpeg-thumbnail-data"
        }
        for name in unwanted { _ = picture.lend { vips_image_remove($0, name) } }
        return picture
    }
}
