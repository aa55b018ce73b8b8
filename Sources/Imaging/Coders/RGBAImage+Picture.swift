internal import CVips
import ImageFiles

extension RGBAImage {
    init?(_ buffer: PixelBuffer) {
        let pixels = buffer.lend { Array(UnsafeRawBufferPointer($0)) }
        self.init(width: buffer.size.width, height: buffer.size.height, pixels: pixels)
    }

    init?(_ picture: Picture) throws(VipsFailure) {
        let rgba = try picture.asRGBA().inBytes()
        let size = rgba.storedSize
        self.init(width: size.width, height: size.height, pixels: try rgba.withPixels { Array($0) })
    }

    /// - Parameter hasAlpha: whether to keep the alpha channel if all pixels are opaque.
    func picture(hasAlpha: Bool) throws(VipsFailure) -> Picture {
        try withoutNeedlessAlpha(Picture(rgba: pixels, PixelSize(width: width, height: height)), hasAlpha)
    }

    /// With the metadata of the picture from which it was made, and an alpha if that has one.
    func picture(from original: Picture) throws(VipsFailure) -> Picture {
        let target = try original.asRGBA().inBytes().emptyCopy(of: PixelSize(width: width, height: height))
        let failed = pixels.withUnsafeBufferPointer { bytes in
            (0..<height).contains { y in
                guard let start = bytes.baseAddress else { return true }
                let line = UnsafeMutablePointer(mutating: start + 4 * width * y)  // libvips only reads it.
                return target.lend { vips_image_write_line($0, CInt(y), line) } != 0
            }
        }
        if failed { throw VipsFailure.take() }
        return try withoutNeedlessAlpha(target, original.hasAlpha)
    }

    private func withoutNeedlessAlpha(_ picture: Picture, _ hasAlpha: Bool) throws(VipsFailure) -> Picture {
        hasAlpha || !isOpaque ? picture : try picture.then { pw_vips_first_bands($0, &$1, 3) }
    }

    private var isOpaque: Bool {
        pixels.withUnsafeBufferPointer { bytes in
            stride(from: 3, to: bytes.count, by: 4).allSatisfy { bytes[$0] == 255 }
        }
    }
}
