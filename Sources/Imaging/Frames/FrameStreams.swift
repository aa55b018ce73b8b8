internal import CVips
internal import Core

/// One frame as a viewer sees it.
struct AnimationFrame {
    /// The whole canvas, composed. Changes with the next frame.
    let pixels: PixelBuffer
    /// In milliseconds, above 10.
    let duration: Int

    /// SDWebImage's rule, and the browsers': what is too short to be meant is a tenth of a second.
    ///
    /// - Parameter duration: as the file has it, in milliseconds.
    init(_ pixels: PixelBuffer, lasting duration: Int) {
        self.pixels = pixels
        self.duration = duration <= 10 ? 100 : duration
    }
}

/// An animation that is decoded frame by frame, once, from the first to the last.
///
/// What it needs of memory does not depend on the number of frames. Not for sharing between threads.
protocol FrameSource: AnyObject {
    var canvas: PixelSize { get }
    /// How often it plays; 0 is for ever.
    var loopCount: Int { get }
    var frameCount: Int { get }

    /// - Throws: class `truncated` where the bytes end within the frame, `bad-image` where it can't be decoded.
    /// - Returns: nil after the last frame.
    func next() throws(Failure) -> AnimationFrame?
}

/// What an animation is, found without decoding a pixel.
struct AnimationFacts: Equatable {
    var canvas: PixelSize
    /// With one whose data are cut short.
    var frames: Int
    /// Of a GIF: without one whose data are cut short.
    var wholeFrames = 0
    /// How often it plays; 0 is for ever.
    var loopCount: Int
    /// Pixels of all frames' own rectangles.
    var drawnPixels: Int
    /// The canvas is what is seen of a still, too.
    var isCanvasOfStill = false
    /// The bytes end within a frame, or within what belongs to the next one.
    var endsEarly: Bool

    init(canvas: PixelSize, frames: Int = 0, loopCount: Int = 1, drawnPixels: Int = 0, endsEarly: Bool = false) {
        self.canvas = canvas
        self.frames = frames
        self.loopCount = loopCount
        self.drawnPixels = drawnPixels
        self.endsEarly = endsEarly
    }

    /// More than a still: there are several frames, or the file ends in what comes after the first.
    var isAnimation: Bool { frames > 1 || endsEarly && wholeFrames > 0 }

    /// To be asked before anything is allocated by what the header says.
    func check(_ limits: ImageLimits) throws(Failure) {
        if let objection = objection(limits) { throw objection }
    }

    func isWithin(_ limits: ImageLimits) -> Bool { objection(limits) == nil }

    private func objection(_ limits: ImageLimits) -> Failure? {
        limits.objection(width: canvas.width, height: canvas.height)
            ?? limits.objection(frames: frames, of: canvas, drawn: drawnPixels)
    }

    /// An animation that is cut short is no image, even where only its first frame is wanted.
    func checkEnd() throws(Failure) {
        guard endsEarly else { return }
        throw Failure(.truncated, "The animation ends within or after its frame \(frames).")
    }
}

/// An animation that is written frame by frame, once.
///
/// What it needs of memory beyond its encoded bytes does not depend on the number of frames.
protocol FrameSink: AnyObject {
    /// - Parameters:
    ///   - pixels: of the sink's size. May change afterwards.
    ///   - duration: in milliseconds.
    /// - Throws: class `encode`.
    func add(_ pixels: PixelBuffer, duration: Int) throws(Failure)

    /// Writes the frames that were not written yet, and ends the file. No frame can be added afterwards.
    ///
    /// - Throws: class `encode`, also where no frame was added.
    func finish() throws(Failure)
}

/// What an animation keeps of its source's metadata, as a still of the same source would.
struct AnimationMetadata {
    /// An ICC profile that frames weren't converted from; empty for none, as the others.
    var profile: [UInt8] = []
    /// The directory of tags, without the word before it.
    var exif: [UInt8] = []
    var xmp: [UInt8] = []
    /// Whose picture it is, for a format that has no tags.
    var comment: String?

    init() {}

    /// What a GIF holds of a picture whose metadata are no more than may stay.
    init(ofPlain picture: Picture) {
        comment = CopyrightBlock(picture.text)?.comment
        xmp = picture.withBlob(VIPS_META_XMP_NAME) { Array($0) } ?? []
    }
}
