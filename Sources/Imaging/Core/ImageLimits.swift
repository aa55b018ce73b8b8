internal import Core

/// How large an image may be before it is refused unseen.
public struct ImageLimits: Codable, Hashable, Sendable {
    /// Width times height of one frame, judged from the header before a pixel is decoded. Each rendition is held to it
    /// as well.
    public var pixels: Int = 100_000_000
    /// Maximum frames of an animation. Its first frame alone may always be used.
    public var frames: Int = 1_000
    /// Frames times the pixels of the canvas, for an animation that stays one: what all of it costs to decode.
    public var animationPixels: Int = 250_000_000
    /// Bytes that a decoder may hold which can't deliver its rows one by one: the coefficients of a progressive JPEG,
    /// an interlaced PNG, all pixels of a HEIC. What a helper may allocate, less what its libraries and the pixels of
    /// variants need; a HEIC or AVIF may have some 83 million pixels so.
    public var decoderBytes: Int = 720 << 20
    /// Scans of a progressive JPEG. Encoders write about ten; each costs a pass over the whole picture.
    public var scans: Int = 100

    public init(
        pixels: Int = 100_000_000, frames: Int = 1_000, animationPixels: Int = 250_000_000,
        decoderBytes: Int = 720 << 20, scans: Int = 100,
    ) {
        self.pixels = pixels
        self.frames = frames
        self.animationPixels = animationPixels
        self.decoderBytes = decoderBytes
        self.scans = scans
    }

    /// What is missing has its default: limits may have been written before animations had any.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        let usual = ImageLimits()
        pixels = try values.decodeIfPresent(Int.self, forKey: .pixels) ?? usual.pixels
        frames = try values.decodeIfPresent(Int.self, forKey: .frames) ?? usual.frames
        animationPixels = try values.decodeIfPresent(Int.self, forKey: .animationPixels) ?? usual.animationPixels
        decoderBytes = try values.decodeIfPresent(Int.self, forKey: .decoderBytes) ?? usual.decoderBytes
        scans = try values.decodeIfPresent(Int.self, forKey: .scans) ?? usual.scans
    }

    /// What is wrong with an image of this size, if anything.
    func objection(width: Int, height: Int) -> Failure? {
        guard width > 0, height > 0 else {
            return Failure(.badImage, "The header says \(width)×\(height) pixels.")
        }
        let (product, overflow) = width.multipliedReportingOverflow(by: height)
        guard overflow || product > pixels else { return nil }
        return Failure(
            .tooManyPixels, "The header says \(width)×\(height) pixels, and the limit is \(pixels) in all.",
        )
    }

    /// What is wrong with an animation on a canvas that is itself within the limit, if anything.
    ///
    /// - Parameter drawn: the pixels of all frames' own rectangles, which may be larger than the canvas.
    func objection(frames count: Int, of canvas: PixelSize, drawn: Int = 0) -> Failure? {
        guard count <= frames else {
            return Failure(.tooManyPixels, "The animation has \(count) frames, and the limit is \(frames).")
        }
        let (product, overflow) = count.multipliedReportingOverflow(by: canvas.pixels)
        guard overflow || max(product, drawn) > animationPixels else { return nil }
        return Failure(
            .tooManyPixels,
            "The animation has \(count) frames on \(canvas.width)×\(canvas.height) pixels, and the limit is "
                + "\(animationPixels) pixels in all.",
        )
    }
}
