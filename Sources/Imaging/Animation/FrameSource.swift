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
    func next() throws(ImagingError) -> AnimationFrame?
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
    /// The bytes end within a frame, or within what belongs to the next one.
    var endsEarly: Bool

    /// Nil where the format has no animation that is decoded here, and where the file is none.
    init?(_ bytes: UnsafeRawBufferPointer, as format: ImageFormat) {
        switch format {
        case .gif: self.init(gif: bytes)
        case .webp: self.init(webp: bytes)
        case .jpeg, .png, .tiff, .heic, .avif, .jxl, .bmp: return nil
        }
    }

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
    func check(_ limits: ImageLimits) throws(ImagingError) {
        if let objection = objection(limits) { throw objection }
    }

    func isWithin(_ limits: ImageLimits) -> Bool { objection(limits) == nil }

    private func objection(_ limits: ImageLimits) -> ImagingError? {
        limits.objection(width: canvas.width, height: canvas.height)
            ?? limits.objection(frames: frames, of: canvas, drawn: drawnPixels)
    }

    /// An animation that is cut short is no image, even where only its first frame is wanted.
    func checkEnd() throws(ImagingError) {
        guard endsEarly else { return }
        throw ImagingError(code: .truncated, message: "The animation ends within or after its frame \(frames).")
    }
}
