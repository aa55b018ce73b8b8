import CAVIF
internal import Core
import ImageFiles

/// Decodes an animated AVIF frame by frame with libavif. Its frames are as stored; see ``AVIFTrack/orientation``.
///
/// The only owner of its handle. https://github.com/AOMediaCodec/libavif/wiki/Example-Code
final class AVIFFrameSource: FrameSource {
    let canvas: PixelSize
    let loopCount: Int
    let frameCount: Int

    private let bytes: UnsafeRawBufferPointer
    private let decoder: UnsafeMutablePointer<avifDecoder>
    private let shown: PixelBuffer
    private var clock = FrameClock()
    private var given = 0

    /// The frames, upright.
    ///
    /// - Parameter bytes: must stay valid as long as the source is used.
    /// - Throws: class `too-many-pixels` before any memory sized by the header is allocated; `truncated` or
    ///   `bad-image`.
    static func upright(
        _ bytes: UnsafeRawBufferPointer, limits: ImageLimits,
    ) throws(Failure) -> any FrameSource {
        guard let track = AVIFTrack(ByteReader(bytes)), let facts = AnimationFacts(avif: bytes) else {
            throw Failure(.badImage, "The AVIF has no animation that can be read.")
        }
        try facts.check(limits)
        try facts.checkEnd()
        let source = try AVIFFrameSource(bytes, track, limits)
        guard track.orientation > 1 else { return source }
        return try UprightFrames(source, orientation: track.orientation)
    }

    private init(_ bytes: UnsafeRawBufferPointer, _ track: AVIFTrack, _ limits: ImageLimits) throws(Failure) {
        guard let decoder = avifDecoderCreate() else {
            throw Failure(.transform, "libavif has no memory for a decoder.")
        }
        self.decoder = decoder
        self.bytes = bytes
        (canvas, loopCount, frameCount) = (track.canvas, track.loopCount, track.frames)
        do throws(Failure) {
            shown = try PixelBuffer(track.canvas)
        } catch {
            avifDecoderDestroy(decoder)
            throw error
        }
        try open(limits)
    }

    deinit { avifDecoderDestroy(decoder) }

    private func open(_ limits: ImageLimits) throws(Failure) {
        decoder.pointee.requestedSource = AVIF_DECODER_SOURCE_TRACKS
        // There is a helper process for each core already.
        decoder.pointee.maxThreads = 1
        // libavif refuses a limit above its default, 16,384 by 16,384.
        decoder.pointee.imageSizeLimit = min(UInt32(clamping: limits.pixels), 1 << 28)
        decoder.pointee.imageCountLimit = UInt32(clamping: frameCount)
        (decoder.pointee.ignoreExif, decoder.pointee.ignoreXMP) = (AVIF_TRUE, AVIF_TRUE)
        // The strict flags check boxes of stills, on which no frame depends.
        decoder.pointee.strictFlags = avifStrictFlags(AVIF_STRICT_DISABLED.rawValue)
        try check(
            avifDecoderSetIOMemory(decoder, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count), "opened")
        try check(avifDecoderParse(decoder), "read")
        guard Int(decoder.pointee.imageCount) == frameCount else {
            throw Failure(
                .badImage, "The AVIF has \(decoder.pointee.imageCount) frames, and its header says \(frameCount).")
        }
        clock = FrameClock(ticks: Int(clamping: decoder.pointee.timescale))
    }

    func next() throws(Failure) -> AnimationFrame? {
        guard given < frameCount else { return nil }
        try check(avifDecoderNextImage(decoder), "decoded")
        given += 1
        guard let image = decoder.pointee.image else { throw Failure(.badImage, "The AVIF has an empty frame.") }
        let size = PixelSize(width: Int(image.pointee.width), height: Int(image.pointee.height))
        guard size == canvas else {
            throw Failure(
                .badImage,
                "The AVIF has a frame of \(size.width)×\(size.height) pixels, and its header says "
                    + "\(canvas.width)×\(canvas.height).")
        }
        try convert(image)
        clock.add(Int(clamping: decoder.pointee.imageTiming.durationInTimescales))
        return AnimationFrame(shown, lasting: clock.take())
    }

    private func convert(_ image: UnsafeMutablePointer<avifImage>) throws(Failure) {
        var target = avifRGBImage()
        avifRGBImageSetDefaults(&target, image)
        (target.format, target.depth) = (AVIF_RGB_FORMAT_RGBA, 8)
        // libyuv's results depend on the machine.
        target.avoidLibYUV = AVIF_TRUE
        target.rowBytes = UInt32(clamping: canvas.width * 4)
        let result = shown.lend { pixels in
            UnsafeMutableRawBufferPointer(pixels).withMemoryRebound(to: UInt8.self) { bytes in
                target.pixels = bytes.baseAddress
                return avifImageYUVToRGB(image, &target)
            }
        }
        try check(result, "converted")
    }

    private func check(_ result: avifResult, _ what: String) throws(Failure) {
        guard result != AVIF_RESULT_OK else { return }
        if result == AVIF_RESULT_OUT_OF_MEMORY {
            throw MemoryShortage.failure(
                "To decode the animated AVIF of \(canvas.width)×\(canvas.height) pixels takes memory that")
        }
        let reason = String(cString: avifResultToString(result))
        throw Failure(
            Self.isEnd(result) ? .truncated : .badImage,
            "The animated AVIF can't be \(what): \(reason).")
    }

    private static func isEnd(_ result: avifResult) -> Bool { result == AVIF_RESULT_TRUNCATED_DATA }
}
