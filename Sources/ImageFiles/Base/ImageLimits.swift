package import Core

/// Limits that the worker checks before it decodes an image.
public struct ImageLimits: Codable, Hashable, Sendable {
    /// Width times height of one frame, checked by the header before a pixel is decoded. Each rendition has the same
    /// limit.
    public var pixels: Int = 100_000_000
    /// Maximum frames of an animation. A still variant may use the first frame of a longer one.
    public var frames: Int = 1_000
    /// Maximum frames times canvas pixels of an animation that is rendered as one: the cost of decoding all of it.
    public var animationPixels: Int = 250_000_000
    /// Memory limit for decoders that cannot stream: the coefficients of a progressive JPEG, an interlaced PNG, all
    /// pixels of a HEIC. It is a helper's memory limit minus the needs of its libraries and of the variants' pixels;
    /// it allows a HEIC or AVIF of some 83 million pixels.
    public var decoderBytes: Int = 720 << 20
    /// Maximum scans of a progressive JPEG. Encoders write about ten; each costs a pass over the whole picture.
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

    /// Missing values have their defaults, since the text may have been written before animations had limits.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        let usual = ImageLimits()
        pixels = try values.decodeIfPresent(Int.self, forKey: .pixels) ?? usual.pixels
        frames = try values.decodeIfPresent(Int.self, forKey: .frames) ?? usual.frames
        animationPixels = try values.decodeIfPresent(Int.self, forKey: .animationPixels) ?? usual.animationPixels
        decoderBytes = try values.decodeIfPresent(Int.self, forKey: .decoderBytes) ?? usual.decoderBytes
        scans = try values.decodeIfPresent(Int.self, forKey: .scans) ?? usual.scans
    }

    /// The failure for an image of this size if it exceeds a limit.
    package func objection(width: Int, height: Int) -> Failure? {
        guard width > 0, height > 0 else {
            return Failure(.badImage, "The header says \(width)×\(height) pixels.")
        }
        let (product, overflow) = width.multipliedReportingOverflow(by: height)
        guard overflow || product > pixels else { return nil }
        return Failure(
            .tooManyPixels,
            "The header says \(width)×\(height) pixels, and the limit is \(pixels) in all (--max-pixels).",
        )
    }

    /// The failure for an animation that exceeds a limit; its canvas alone is within them.
    ///
    /// - Parameter drawn: the sum of the pixels of all frames' own rectangles, which may be larger than the canvas.
    package func objection(frames count: Int, of canvas: PixelSize, drawn: Int = 0) -> Failure? {
        guard count <= frames else {
            return Failure(
                .tooManyPixels, "The animation has \(count) frames, and the limit is \(frames) (--max-frames).")
        }
        let (product, overflow) = count.multipliedReportingOverflow(by: canvas.pixels)
        guard overflow || max(product, drawn) > animationPixels else { return nil }
        return Failure(
            .tooManyPixels,
            "The animation has \(count) frames on \(canvas.width)×\(canvas.height) pixels, and the limit is "
                + "\(animationPixels) pixels in all (--max-animation-pixels).",
        )
    }
}

/// A width and a height in pixels.
package struct PixelSize: Hashable, Sendable {
    package var width: Int
    package var height: Int

    package init(width: Int, height: Int) { (self.width, self.height) = (width, height) }

    /// The stored size of a picture that is shown turned by a quarter.
    package var transposed: PixelSize { PixelSize(width: height, height: width) }

    /// The largest size of this shape whose RGBA pixels take at most this many bytes; at least 1×1.
    package func scaledDown(toBytes bytes: Int) -> PixelSize {
        let most = Double(max(1, bytes / 4))
        guard Double(pixels) > most else { return self }
        let factor = (most / Double(pixels)).squareRoot()
        let width = max(1, Int(Double(width) * factor))
        let height = max(1, Int(Double(height) * factor))
        // A line of one pixel cannot get thinner, so it gets shorter.
        return PixelSize(width: min(width, max(1, Int(most) / height)), height: min(height, max(1, Int(most) / width)))
    }

    /// The number of pixels. Headers may claim any sides of up to 63 bits; if the product overflows, this is the
    /// largest number.
    package var pixels: Int {
        let (product, overflow) = width.multipliedReportingOverflow(by: height)
        return overflow ? .max : product
    }
}
