import CWebP
import SystemPackage

/// Writes an animated WebP with libwebp's own encoder, which holds the encoded frames until the end.
///
/// Its settings are gif2webp's, key frames as often among them: where a whole frame is the smaller one they save bytes.
/// The one owner of its handle. https://developers.google.com/speed/webp/docs/container-api#webpanimencoder_api
final class WebPFrameSink: FrameSink {
    enum Compression {
        /// 1 to 100.
        case lossy(quality: Int)
        /// - nearLossless: 0 to 99, how little pixels are nudged; nil not at all.
        case lossless(nearLossless: Int? = nil)

        /// How many frames may lie between two key frames, at least and at most.
        fileprivate var keyFrames: ClosedRange<CInt> {
            switch self {
            case .lossy: 3...5
            case .lossless: 9...17
            }
        }
    }

    private let size: PixelSize
    private let descriptor: FileDescriptor
    private let encoder: OpaquePointer
    private var config = WebPConfig()
    /// Of all frames so far, in milliseconds.
    private var end = 0

    /// - Parameters:
    ///   - loopCount: 0 is for ever; no more than 65,535 are written.
    ///   - effort: libwebp's method, 0 (fast) to 6.
    init(
        _ descriptor: FileDescriptor, size: PixelSize, loopCount: Int, compression: Compression, effort: Int = 4,
    ) throws(ImagingError) {
        var options = WebPAnimEncoderOptions()
        guard WebPAnimEncoderOptionsInit(&options) != 0, Self.configure(&config, compression, effort) else {
            throw ImagingError(code: .encode, message: "libwebp is of another version than it was built for.")
        }
        options.kmin = compression.keyFrames.lowerBound
        options.kmax = compression.keyFrames.upperBound
        options.anim_params.loop_count = CInt(min(max(0, loopCount), 65_535))
        guard let encoder = WebPAnimEncoderNew(CInt(size.width), CInt(size.height), &options) else {
            throw ImagingError(code: .encode, message: "libwebp has no memory for the animation.")
        }
        self.encoder = encoder
        self.size = size
        self.descriptor = descriptor
    }

    deinit { WebPAnimEncoderDelete(encoder) }

    private static func configure(_ config: inout WebPConfig, _ compression: Compression, _ effort: Int) -> Bool {
        switch compression {
        case .lossy(let quality):
            guard WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, Float(quality)) != 0 else { return false }
        case .lossless(let nearLossless):
            guard WebPConfigInit(&config) != 0 else { return false }
            config.lossless = 1
            config.near_lossless = CInt(nearLossless ?? 100)
        }
        config.method = CInt(effort)
        return WebPValidateConfig(&config) != 0
    }

    func add(_ pixels: PixelBuffer, duration: Int) throws(ImagingError) {
        var picture = WebPPicture()
        guard WebPPictureInit(&picture) != 0 else { throw failure() }
        defer { WebPPictureFree(&picture) }
        picture.use_argb = 1
        picture.width = CInt(size.width)
        picture.height = CInt(size.height)
        let isLoaded = pixels.lend { pixels in
            pixels.withMemoryRebound(to: UInt32.self) { words in
                words.withMemoryRebound(to: UInt8.self) {
                    WebPPictureImportRGBA(&picture, $0.baseAddress, CInt(size.width * 4)) != 0
                }
            }
        }
        guard isLoaded, WebPAnimEncoderAdd(encoder, &picture, CInt(clamping: end), &config) != 0 else {
            throw failure()
        }
        end += duration
    }

    func finish() throws(ImagingError) {
        var data = WebPData()
        WebPDataInit(&data)
        defer { WebPDataClear(&data) }
        guard WebPAnimEncoderAdd(encoder, nil, CInt(clamping: end), nil) != 0,
            WebPAnimEncoderAssemble(encoder, &data) != 0
        else { throw failure() }
        do {
            _ = try descriptor.writeAll(UnsafeRawBufferPointer(start: data.bytes, count: data.size))
        } catch {
            throw ImagingError(code: .encode, message: "The animated WebP could not be written: \(error)")
        }
    }

    private func failure() -> ImagingError {
        let reason = WebPAnimEncoderGetError(encoder).map { String(cString: $0) } ?? ""
        return ImagingError(
            code: .encode,
            message: "libwebp could not encode the animation: \(reason.isEmpty ? "it gave no reason" : reason)")
    }
}
