import CWebP

/// An animated WebP, frame by frame, composed by libwebp's own decoder.
///
/// The one owner of its handle. https://developers.google.com/speed/webp/docs/container-api#webpanimdecoder_api
final class WebPFrameSource: FrameSource {
    let canvas: PixelSize
    let loopCount: Int
    let frameCount: Int

    private let bytes: UnsafeRawBufferPointer
    private let decoder: OpaquePointer
    private let shown: PixelBuffer
    /// Where the last frame ended, in milliseconds.
    private var end = 0
    /// Ends before the frame that can't be decoded.
    private let isLenient: Bool
    private var frames = 0

    /// - Parameter bytes: must stay where they are as long as the source is in use.
    /// - Throws: class `too-many-pixels` before anything is allocated by the header, `truncated` or `bad-image`.
    init(bytes: UnsafeRawBufferPointer, limits: ImageLimits, isLenient: Bool = false) throws(ImagingError) {
        self.isLenient = isLenient
        guard let facts = AnimationFacts(webp: bytes) else {
            throw Self.failure(bytes, "The WebP has no animation that can be read")
        }
        try facts.check(limits)
        let shown = try PixelBuffer(facts.canvas)
        var options = WebPAnimDecoderOptions()
        guard WebPAnimDecoderOptionsInit(&options) != 0 else {
            throw ImagingError(code: .transform, message: "libwebp is of another version than it was built for.")
        }
        options.color_mode = MODE_RGBA
        // Processes are as many as cores.
        options.use_threads = 0
        var data = WebPData(bytes: bytes.bindMemory(to: UInt8.self).baseAddress, size: bytes.count)
        guard let decoder = WebPAnimDecoderNew(&data, &options) else {
            throw Self.failure(bytes, "The animated WebP can't be decoded")
        }
        self.bytes = bytes
        self.decoder = decoder
        self.shown = shown
        canvas = facts.canvas
        loopCount = facts.loopCount
        frameCount = facts.frames
    }

    deinit { WebPAnimDecoderDelete(decoder) }

    func next() throws(ImagingError) -> AnimationFrame? {
        guard WebPAnimDecoderHasMoreFrames(decoder) != 0 else { return nil }
        var pixels: UnsafeMutablePointer<UInt8>?
        var timestamp: CInt = 0
        guard WebPAnimDecoderGetNext(decoder, &pixels, &timestamp) != 0, let pixels else {
            if isLenient, frames > 0 { return nil }
            throw Self.failure(bytes, "A frame of the WebP can't be decoded")
        }
        frames += 1
        shown.copy(from: pixels)
        let duration = Int(timestamp) - end
        end = Int(timestamp)
        return AnimationFrame(shown, lasting: duration)
    }

    private static func failure(_ bytes: UnsafeRawBufferPointer, _ what: String) -> ImagingError {
        switch Structure(of: bytes, as: .webp) {
        case .endsEarly: ImagingError(code: .truncated, message: "\(what): the file ends too early.")
        case .whole: ImagingError(code: .badImage, message: "\(what).")
        }
    }
}
