internal import CVips

/// What encoders need of memory, which a helper has little of: one that gets none ends the helper, or writes a file that is
/// no picture (libaom through libheif 1.15).
///
/// Bytes for each pixel, the picture itself and what allocators keep among them: by the sizes at which helpers ended well
/// and at which they didn't, and what `vips` took for 12 to 48 million pixels (libvips 8.14, libjxl 0.7, libheif 1.15 with
/// libaom 3.6, libwebp 1.2.4).
enum EncoderMemory {
    /// What a helper may allocate (1 GiB), less what it needs for itself.
    static let most = 960 << 20

    /// - Throws: with words for whoever asked for it, where the picture is too large for its encoder.
    static func check(_ encoding: Encoding, _ size: PixelSize) throws(VipsFailure) {
        let pixels = most / bytesPerPixel(encoding, size)
        guard size.pixels > pixels else { return }
        throw VipsFailure(
            text:
                "\(size.width)×\(size.height) pixels are more than \(encoding.format.rawValue) can be encoded of in a "
                + "helper's memory, some \(pixels / 1_000_000) million; ask for less, or for another format")
    }

    private static func bytesPerPixel(_ encoding: Encoding, _ size: PixelSize) -> Int {
        let effort = encoding.effort(pixels: size.pixels)
        return switch encoding.format {
        case .jxl where encoding.isLossless: effort <= 3 ? 113 : 150
        case .jxl: effort <= 3 ? 72 : effort <= 7 ? 96 : 150
        case .avif: 33
        case .webp: encoding.isLossless ? 30 : 10
        case .gif: 60
        case .jpeg, .png, .tiff: 8
        }
    }
}

extension EncodedFile {
    /// That a decoder finds a picture of this size in it.
    func checkHeader(_ size: PixelSize) throws(VipsFailure) {
        let found = try lend { (bytes) throws(VipsFailure) in try Picture(of: bytes, as: .avif).storedSize }
        guard found == size else {
            throw VipsFailure(text: "the encoder wrote \(found.width)×\(found.height) pixels")
        }
    }
}
