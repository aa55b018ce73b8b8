internal import CWebP

/// libwebp's lossy encoder, with the settings libvips has by default: method 4, whole alpha.
struct WebPEncoder {
    let size: PixelSize
    let hasAlpha: Bool
    let quality: Int

    /// - Parameter pixels: RGB or RGBA of eight bits a channel, row by row without gaps.
    func encode(_ pixels: UnsafeRawBufferPointer) throws(VipsFailure) -> WebPFile {
        var config = WebPConfig()
        var picture = WebPPicture()
        guard WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, Float(quality)) != 0, WebPPictureInit(&picture) != 0 else {
            throw VipsFailure(text: "libwebp is of another version than it was built for")
        }
        defer { WebPPictureFree(&picture) }
        config.method = 4
        picture.width = CInt(size.width)
        picture.height = CInt(size.height)
        try load(pixels, into: &picture)
        let file = WebPFile()
        guard file.collect(from: &picture, config) else {
            throw VipsFailure(text: "libwebp failed with error \(picture.error_code.rawValue)")
        }
        return file
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
}

/// An encoded file in libwebp's memory.
final class WebPFile {
    private var writer = WebPMemoryWriter()

    deinit { WebPMemoryWriterClear(&writer) }

    fileprivate func collect(from picture: inout WebPPicture, _ config: WebPConfig) -> Bool {
        var config = config
        return withUnsafeMutablePointer(to: &writer) { writer in
            pw_webp_collect(&picture, writer)
            return WebPEncode(&config, &picture) != 0
        }
    }

    func withBytes(_ body: (UnsafeRawBufferPointer) throws -> Void) rethrows {
        try body(UnsafeRawBufferPointer(start: writer.mem, count: writer.size))
    }
}
