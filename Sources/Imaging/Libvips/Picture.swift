internal import CVips
import ImageFiles

/// An image of libvips: a header and a recipe for pixels. The recipe runs only when pixels are read.
///
/// The only owner of its reference. Operations hold references to their inputs themselves, so a picture may be released
/// before those made from it. Not for sharing between threads.
final class Picture {
    private let image: UnsafeMutablePointer<VipsImage>
    /// The source that its loader reads.
    private let source: UnsafeMutablePointer<VipsSource>?

    /// - Parameters:
    /// - source: the source that `make` reads. The picture takes the caller's reference.
    ///   - make: a libvips call that stores a new reference and returns 0, or returns −1.
    init(
        reading source: UnsafeMutablePointer<VipsSource>? = nil,
        _ make: (inout UnsafeMutablePointer<VipsImage>?) -> CInt,
    ) throws(VipsFailure) {
        self.source = source
        var result: UnsafeMutablePointer<VipsImage>?
        guard make(&result) == 0, let result else {
            if let result { g_object_unref(result) }
            // No other property is set yet, so `deinit` will not run.
            if let source { g_object_unref(source) }
            throw VipsFailure.take()
        }
        image = result
    }

    /// A copy of pixels of four channels, row by row.
    convenience init(rgba pixels: UnsafeRawBufferPointer, _ size: PixelSize) throws(VipsFailure) {
        try self.init { result in
            result = vips_image_new_from_memory_copy(
                pixels.baseAddress, pixels.count, CInt(size.width), CInt(size.height), 4, VIPS_FORMAT_UCHAR)
            guard let image = result else { return -1 }
            pw_vips_set_srgb(image)
            return 0
        }
    }

    convenience init(rgba pixels: [UInt8], _ size: PixelSize) throws(VipsFailure) {
        // The array's own function does not support typed errors.
        let made = pixels.withUnsafeBytes { bytes in
            Result { () throws(VipsFailure) in try Picture(rgba: bytes, size) }
        }
        let copy = try made.get()
        try self.init { result in
            result = copy.lend { image in
                UnsafeMutablePointer(g_object_ref(image).assumingMemoryBound(to: VipsImage.self))
            }
            return 0
        }
    }

    deinit {
        g_object_unref(image)
        if let source { g_object_unref(source) }
    }

    /// The loader's offset in the file; nil for a picture that was not loaded from a file.
    var bytesRead: Int? { source.map { Int($0.pointee.read_position) } }

    /// Lends the image for one call. The pointer must not outlive it.
    func lend<Result>(_ body: (UnsafeMutablePointer<VipsImage>) -> Result) -> Result {
        withExtendedLifetime(self) { body(image) }
    }

    /// A picture made from this one.
    func then(
        _ call: (UnsafeMutablePointer<VipsImage>, inout UnsafeMutablePointer<VipsImage>?) -> CInt,
    ) throws(VipsFailure) -> Picture {
        try Picture { result in lend { call($0, &result) } }
    }
}

// MARK: - Facts of the header

extension Picture {
    /// As stored: before its orientation is applied.
    var storedSize: PixelSize {
        lend { PixelSize(width: Int(vips_image_get_width($0)), height: Int(vips_image_get_height($0))) }
    }

    var bands: Int { lend { Int(vips_image_get_bands($0)) } }
    var hasAlpha: Bool { lend { vips_image_hasalpha($0) != 0 } }
    var bandFormat: VipsBandFormat { lend { vips_image_get_format($0) } }
    var interpretation: VipsInterpretation { lend { vips_image_get_interpretation($0) } }

    /// The tag's value, 1 to 8; 1 if it is missing or invalid.
    var orientation: Int { lend { Int(vips_image_get_orientation($0)) } }

    /// Whether width and height are swapped when it is shown.
    var isTurnedByAQuarter: Bool { orientation >= 5 }

    var seenSize: PixelSize { isTurnedByAQuarter ? storedSize.transposed : storedSize }

    /// Frames or pages in the whole file; only the first is loaded.
    var frames: Int { lend { max(1, Int(vips_image_get_n_pages($0))) } }

    /// Runs `body` with the embedded colour profile, or returns nil if there is none.
    func withColourProfile<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result? {
        withBlob(VIPS_META_ICC_NAME, body)
    }

    /// Runs `body` with a block of metadata, by libvips' name for it, or returns nil if there is none.
    func withBlob<Result>(_ name: String, _ body: (UnsafeRawBufferPointer) -> Result) -> Result? {
        lend { image in
            var data: UnsafeRawPointer?
            var length = 0
            guard vips_image_get_typeof(image, name) != 0,
                vips_image_get_blob(image, name, &data, &length) == 0, let data
            else { return nil }
            return body(UnsafeRawBufferPointer(start: data, count: length))
        }
    }
}
