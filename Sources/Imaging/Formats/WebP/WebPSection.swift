import CWebP
internal import Core
import ImageFiles

/// A run of frames in libwebp's encoder, which holds them encoded until the run's end. The first is a key frame.
///
/// The only owner of its handle. https://developers.google.com/speed/webp/docs/container-api#webpanimencoder_api
final class WebPSection {
    private let encoder: OpaquePointer
    private let size: PixelSize
    private var config: WebPConfig
    /// Of all frames so far, in milliseconds.
    private(set) var duration = 0

    /// - Parameter loopCount: 0 to 65,535.
    init(size: PixelSize, loopCount: Int, _ settings: WebPFrameSettings) throws(Failure) {
        config = try settings.config()
        var options = WebPAnimEncoderOptions()
        guard WebPAnimEncoderOptionsInit(&options) != 0 else { throw WebPFrameSettings.otherVersion }
        options.kmin = CInt(settings.keyFrames.lowerBound)
        options.kmax = CInt(settings.keyFrames.upperBound)
        options.anim_params.loop_count = CInt(loopCount)
        guard let encoder = WebPAnimEncoderNew(CInt(size.width), CInt(size.height), &options) else {
            throw Failure(.encode, "libwebp has no memory for the animation.")
        }
        self.encoder = encoder
        self.size = size
    }

    deinit { WebPAnimEncoderDelete(encoder) }

    func add(_ pixels: PixelBuffer, duration: Int) throws(Failure) {
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
        guard isLoaded, WebPAnimEncoderAdd(encoder, &picture, CInt(clamping: self.duration), &config) != 0 else {
            throw failure()
        }
        self.duration += duration
    }

    /// Lends a whole file of its frames. No frame may be added afterwards.
    func finish(_ body: (UnsafeRawBufferPointer) throws(Failure) -> Void) throws(Failure) {
        var data = WebPData()
        WebPDataInit(&data)
        defer { WebPDataClear(&data) }
        guard WebPAnimEncoderAdd(encoder, nil, CInt(clamping: duration), nil) != 0,
            WebPAnimEncoderAssemble(encoder, &data) != 0
        else { throw failure() }
        try body(UnsafeRawBufferPointer(start: data.bytes, count: data.size))
    }

    private func failure() -> Failure {
        let reason = WebPAnimEncoderGetError(encoder).map { String(cString: $0) } ?? ""
        return Failure(
            .encode, "libwebp could not encode the animation: \(reason.isEmpty ? "it gave no reason" : reason)")
    }
}
