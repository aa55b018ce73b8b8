internal import CVips
internal import Core
import ImageFiles

/// One frame as a viewer shows it.
struct AnimationFrame {
    /// The whole canvas, composed. Changes with the next frame.
    let pixels: PixelBuffer
    /// In milliseconds, above 10.
    let duration: Int

    /// Durations that are too short become a tenth of a second, as in SDWebImage and browsers.
    ///
    /// - Parameter duration: as in the file, in milliseconds.
    init(_ pixels: PixelBuffer, lasting duration: Int) {
        self.pixels = pixels
        self.duration = duration <= 10 ? 100 : duration
    }
}

/// Decodes an animation frame by frame, once, from the first to the last.
///
/// Its memory does not depend on the number of frames. Not for sharing between threads.
protocol FrameSource: AnyObject {
    var canvas: PixelSize { get }
    /// How often it plays; 0 means for ever.
    var loopCount: Int { get }
    var frameCount: Int { get }

    /// - Throws: class `truncated` if the bytes end within the frame, `bad-image` if it cannot be decoded.
    /// - Returns: nil after the last frame.
    func next() throws(Failure) -> AnimationFrame?
}

/// Passes on frames, and corrects failures: when memory runs out, a library may report a damaged frame.
final class CheckedFrames: FrameSource {
    private let source: any FrameSource
    private let replace: (Failure) -> Failure

    init(_ source: any FrameSource, replace: @escaping (Failure) -> Failure) {
        self.source = source
        self.replace = replace
    }

    var canvas: PixelSize { source.canvas }
    var loopCount: Int { source.loopCount }
    var frameCount: Int { source.frameCount }

    func next() throws(Failure) -> AnimationFrame? {
        do throws(Failure) { return try source.next() } catch { throw replace(error) }
    }
}

/// The facts of an animation, found without decoding a pixel.
struct AnimationFacts: Equatable {
    var canvas: PixelSize
    /// Including a frame whose data are cut.
    var frames: Int
    /// For a GIF: without a frame whose data are cut.
    var wholeFrames = 0
    /// How often it plays; 0 means for ever.
    var loopCount: Int
    /// The sum of the pixels of all frames' own rectangles.
    var drawnPixels: Int
    /// Whether a still of the format shows the canvas too.
    var isCanvasOfStill = false
    /// Whether the bytes end within a frame, or within data for the next one.
    var endsEarly: Bool

    init(canvas: PixelSize, frames: Int = 0, loopCount: Int = 1, drawnPixels: Int = 0, endsEarly: Bool = false) {
        self.canvas = canvas
        self.frames = frames
        self.loopCount = loopCount
        self.drawnPixels = drawnPixels
        self.endsEarly = endsEarly
    }

    /// Whether there are several frames, or the file ends in data after the first.
    var isAnimation: Bool { frames > 1 || endsEarly && wholeFrames > 0 }

    /// Must be called before any memory sized by the header is allocated.
    func check(_ limits: ImageLimits) throws(Failure) {
        if let objection = objection(limits) { throw objection }
    }

    func isWithin(_ limits: ImageLimits) -> Bool { objection(limits) == nil }

    private func objection(_ limits: ImageLimits) -> Failure? {
        limits.objection(width: canvas.width, height: canvas.height)
            ?? limits.objection(frames: frames, of: canvas, drawn: drawnPixels)
    }

    /// A cut animation is refused, even if only its first frame is needed.
    func checkEnd() throws(Failure) {
        guard endsEarly else { return }
        throw Failure(.truncated, "The animation ends within or after its frame \(frames).")
    }
}

/// Writes an animation frame by frame, once.
///
/// Its memory besides the encoded bytes does not depend on the number of frames.
protocol FrameSink: AnyObject {
    /// - Parameters:
    ///   - pixels: of the sink's size. May change afterwards.
    ///   - duration: in milliseconds.
    /// - Throws: class `encode`.
    func add(_ pixels: PixelBuffer, duration: Int) throws(Failure)

    /// Writes the remaining frames, and ends the file. No frame can be added afterwards.
    ///
    /// - Throws: class `encode`, also if no frame was added.
    func finish() throws(Failure)
}

/// The metadata that an animation keeps of its source, the same as a still of that source.
struct AnimationMetadata {
    /// The ICC profile of frames that were not converted; empty for none, like the other fields.
    var profile: [UInt8] = []
    /// The directory of tags, without the word before it.
    var exif: [UInt8] = []
    var xmp: [UInt8] = []
    /// Artist and Copyright, for a format without tags.
    var comment: String?

    init() {}

    /// The metadata that a GIF stores of a picture with no more than the allowed metadata.
    init(ofPlain picture: Picture) {
        comment = CopyrightBlock(picture.text)?.comment
        xmp = picture.withBlob(VIPS_META_XMP_NAME) { Array($0) } ?? []
    }
}
