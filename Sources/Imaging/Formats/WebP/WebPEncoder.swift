internal import CWebP
import ImageFiles

/// libwebp's encoder for single pictures, with libvips' default settings.
struct WebPEncoder {
    struct Settings {
        /// 0 to 100. For a lossless file: the effort.
        var quality: Int
        /// libwebp's method, 0 to 6.
        var effort: Int
        var isLossless: Bool
        /// 0 to 100, where 100 changes nothing; nil for a lossy file.
        var nearLossless: Int?
    }

    let size: PixelSize
    let hasAlpha: Bool
    let settings: Settings

    /// - Parameter pixels: RGB or RGBA of eight bits a channel, row by row without gaps.
    func encode(_ pixels: UnsafeRawBufferPointer) throws(VipsFailure) -> EncodedFile {
        var config = WebPConfig()
        var picture = WebPPicture()
        guard WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, Float(settings.quality)) != 0,
            WebPPictureInit(&picture) != 0
        else { throw VipsFailure(text: "libwebp is of another version than this program was built for") }
        defer { WebPPictureFree(&picture) }
        apply(&config)
        picture.use_argb = config.lossless
        picture.width = CInt(size.width)
        picture.height = CInt(size.height)
        try load(pixels, into: &picture)
        return try Self.file(of: &picture, config)
    }

    private func apply(_ config: inout WebPConfig) {
        config.method = CInt(settings.effort)
        guard settings.isLossless || settings.nearLossless != nil else { return }
        config.lossless = 1
        config.near_lossless = CInt(settings.nearLossless ?? 100)
    }

    private func load(_ pixels: UnsafeRawBufferPointer, into picture: inout WebPPicture) throws(VipsFailure) {
        let channels = hasAlpha ? 4 : 3
        guard pixels.count == size.pixels * channels, let start = pixels.bindMemory(to: UInt8.self).baseAddress else {
            throw VipsFailure(text: "the picture is not of \(channels) channels")
        }
        let stride = CInt(size.width * channels)
        let loaded =
            hasAlpha
            ? WebPPictureImportRGBA(&picture, start, stride) : WebPPictureImportRGB(&picture, start, stride)
        guard loaded != 0 else { throw VipsFailure(text: "libwebp has no memory for the picture") }
    }

    private static func file(
        of picture: inout WebPPicture, _ config: WebPConfig,
    ) throws(VipsFailure) -> EncodedFile {
        var config = config
        var writer = WebPMemoryWriter()
        let worked = withUnsafeMutablePointer(to: &writer) { writer in
            pw_webp_collect(&picture, writer)
            return WebPEncode(&config, &picture) != 0
        }
        // From here on the file owns the memory, also after a failed write.
        let file = EncodedFile(owning: UnsafeRawBufferPointer(start: writer.mem, count: writer.size)) {
            WebPFree(UnsafeMutableRawPointer(mutating: $0))
        }
        guard worked else { throw VipsFailure(text: "libwebp failed with error \(picture.error_code.rawValue)") }
        return file
    }
}
