/// What stands for a picture before it is there, or where it need not be: a colour, two blurs and a hash to compare by.
///
/// Told from pixels that were decoded for a variant anyway, so it costs a few hundred microseconds and no second
/// decoding. Of the first frame.
public struct Placeholders: Codable, Hashable, Sendable {
    /// `#rrggbb`; nil where every pixel is transparent.
    public let dominantColour: String?
    /// 4×3 components, 28 characters. What is transparent counts as white.
    public let blurHash: String
    /// Base64, up to 32 characters. Knows the aspect ratio and the alpha.
    public let thumbHash: String
    /// 64 bits, most significant first; nil for a picture without structure. See ``PerceptualHash``.
    public let perceptualHash: Int64?

    public init(dominantColour: String?, blurHash: String, thumbHash: String, perceptualHash: Int64?) {
        self.dominantColour = dominantColour
        self.blurHash = blurHash
        self.thumbHash = thumbHash
        self.perceptualHash = perceptualHash
    }

    init(of miniature: Miniature) {
        let square = miniature.resampled(width: PerceptualHash.side, height: PerceptualHash.side).onWhite
        dominantColour = DominantColour(of: miniature)?.hex
        blurHash = BlurHash(of: square, columns: 4, rows: 3).text
        thumbHash = ThumbHash(of: miniature).base64
        perceptualHash = PerceptualHash(of: square)?.signed
    }
}

extension Picture {
    /// - Parameter width: of the source, as is `height`: what was decoded may have another shape, where two variants
    ///   want different ones.
    func placeholders(width: Int, height: Int) throws(VipsFailure) -> Placeholders {
        let from = storedSize
        let side = Double(Miniature.side)
        let scale = min(
            side / Double(max(width, height)), Double(from.width) / Double(width),
            Double(from.height) / Double(height), 1)
        let size = PixelSize(
            width: max(1, Int((Double(width) * scale).rounded())),
            height: max(1, Int((Double(height) * scale).rounded())),
        )
        let channels = bands
        return Placeholders(
            of: try withPixels {
                Miniature(sampling: $0, of: from, channels: channels, width: size.width, height: size.height)
            })
    }
}
