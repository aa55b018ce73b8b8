/// How large an image may be before it is refused unseen.
public struct ImageLimits: Codable, Hashable, Sendable {
    /// Width times height of one frame, judged from the header before a pixel is decoded. Each rendition is held to it
    /// as well.
    public var pixels: Int = 100_000_000

    public init(pixels: Int = 100_000_000) {
        self.pixels = pixels
    }

    /// What is wrong with an image of this size, if anything.
    func objection(width: Int, height: Int) -> ImagingError? {
        guard width > 0, height > 0 else {
            return ImagingError(code: .badImage, message: "The header says \(width)×\(height) pixels.")
        }
        let (product, overflow) = width.multipliedReportingOverflow(by: height)
        guard overflow || product > pixels else { return nil }
        return ImagingError(
            code: .tooManyPixels,
            message: "The header says \(width)×\(height) pixels, and the limit is \(pixels) in all.",
        )
    }
}
