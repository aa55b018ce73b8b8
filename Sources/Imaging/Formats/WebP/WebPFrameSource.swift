import CWebP
internal import Core
import ImageFiles

/// Decodes an animated WebP frame by frame, composed by libwebp's own decoder.
///
/// The only owner of its handle. https://developers.google.com/speed/webp/docs/container-api#webpanimdecoder_api
final class WebPFrameSource: FrameSource {
    let canvas: PixelSize
    let loopCount: Int
    let frameCount: Int

    private let bytes: UnsafeRawBufferPointer
    private let decoder: OpaquePointer
    private let shown: PixelBuffer
    /// Where the last frame ended, in milliseconds.
    private var end = 0
    /// Whether to end before the frame that cannot be decoded.
    private let isLenient: Bool
    private var frames = 0

    /// - Parameter bytes: must stay valid as long as the source is used.
    /// - Throws: class `too-many-pixels` before any memory sized by the header is allocated; `truncated` or
    ///   `bad-image`.
    init(bytes: UnsafeRawBufferPointer, limits: ImageLimits, isLenient: Bool = false) throws(Failure) {
        self.isLenient = isLenient
        guard let facts = AnimationFacts(webp: bytes) else {
            throw Self.failure(bytes, "The WebP has no animation that can be read")
        }
        try facts.check(limits)
        let shown = try PixelBuffer(facts.canvas)
        var options = WebPAnimDecoderOptions()
        guard WebPAnimDecoderOptionsInit(&options) != 0 else {
            throw Failure(.transform, "libwebp is of another version than this program was built for.")
        }
        options.color_mode = MODE_RGBA
        // There is a helper process for each core already.
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

    func next() throws(Failure) -> AnimationFrame? {
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

    private static func failure(_ bytes: UnsafeRawBufferPointer, _ what: String) -> Failure {
        ImageFormat.webp.header.endsEarly(ByteReader(bytes))
            ? Failure(.truncated, "\(what): the file ends too early.")
            : Failure(.badImage, "\(what).")
    }
}

extension AnimationFacts {
    /// Reads the facts with libwebp's demuxer, which allocates a small record for each frame. Nil for a still, and if
    /// the demuxer cannot read the file to its end.
    init?(webp bytes: UnsafeRawBufferPointer) {
        guard let demuxer = WebPDemuxer(bytes) else { return nil }
        let size = PixelSize(
            width: demuxer.feature(WEBP_FF_CANVAS_WIDTH), height: demuxer.feature(WEBP_FF_CANVAS_HEIGHT))
        guard demuxer.feature(WEBP_FF_FORMAT_FLAGS) & Int(ANIMATION_FLAG.rawValue) != 0 else { return nil }
        self.init(
            canvas: size,
            frames: demuxer.feature(WEBP_FF_FRAME_COUNT),
            loopCount: demuxer.feature(WEBP_FF_LOOP_COUNT),
            endsEarly: !demuxer.isComplete,
        )
    }
}

/// libwebp's demuxer for bytes in memory; the only owner of its handle.
struct WebPDemuxer: ~Copyable {
    private let handle: OpaquePointer
    /// Whether every chunk that the header announces is there.
    let isComplete: Bool

    /// Nil if even the header cannot be read.
    init?(_ bytes: UnsafeRawBufferPointer) {
        var data = WebPData(bytes: bytes.bindMemory(to: UInt8.self).baseAddress, size: bytes.count)
        var state = WEBP_DEMUX_PARSE_ERROR
        guard let handle = WebPDemuxPartial(&data, &state) else { return nil }
        guard state.rawValue > WEBP_DEMUX_PARSING_HEADER.rawValue else {
            WebPDemuxDelete(handle)
            return nil
        }
        self.handle = handle
        isComplete = state == WEBP_DEMUX_DONE
    }

    deinit { WebPDemuxDelete(handle) }

    func feature(_ feature: WebPFormatFeature) -> Int { Int(WebPDemuxGetI(handle, feature)) }
}
