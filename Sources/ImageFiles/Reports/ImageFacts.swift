/// The facts in an image's header, and those of its pixels if any were decoded.
public struct ImageFacts: Codable, Hashable, Sendable {
    /// The name of an ``ImageFormat`` or of a registered coder.
    public let formatName: String
    /// In pixels, upright: after its EXIF orientation was applied. Of the first frame.
    public let width: Int
    public let height: Int
    /// Frames or pages; 1 for a still.
    public let frames: Int
    /// Whether there is an alpha channel, used or not.
    public let hasAlpha: Bool
    /// Nil if no pixel was decoded.
    public var placeholders: Placeholders?
    /// The damage of a file that was accepted with it; nil for an undamaged file.
    public var damage: String?

    public init(
        formatName: String, width: Int, height: Int, frames: Int, hasAlpha: Bool, placeholders: Placeholders? = nil,
    ) {
        self.formatName = formatName
        self.width = width
        self.height = height
        self.frames = frames
        self.hasAlpha = hasAlpha
        self.placeholders = placeholders
    }

    /// Nil for a format of a registered coder.
    public var format: ImageFormat? { ImageFormat(rawValue: formatName) }
}

/// A variant that was written.
public struct Rendition: Codable, Hashable, Sendable {
    public let name: String
    /// In pixels.
    public let width: Int
    public let height: Int
    /// The name of an ``ImageFormat`` or of a registered coder.
    public let formatName: String

    public init(name: String, width: Int, height: Int, format: ImageFormat) {
        self.init(name: name, width: width, height: height, formatName: format.rawValue)
    }

    public init(name: String, width: Int, height: Int, formatName: String) {
        self.name = name
        self.width = width
        self.height = height
        self.formatName = formatName
    }

    /// Nil for a format of a registered coder.
    public var format: ImageFormat? { ImageFormat(rawValue: formatName) }
}

/// The result of a transform: the source's facts and the renditions.
public struct TransformReport: Codable, Hashable, Sendable {
    public let facts: ImageFacts
    /// In the order of the request.
    public let renditions: [Rendition]

    public init(facts: ImageFacts, renditions: [Rendition]) {
        self.facts = facts
        self.renditions = renditions
    }
}

/// The damage that is accepted in a source.
public struct DecodeTolerance: Codable, Hashable, Sendable {
    /// Whether the later frames of an animation are checked only by the file's structure, if no variant is animated.
    public var firstFrameSuffices: Bool
    /// Whether the decodable pixels of a damaged JPEG, PNG, GIF, WebP, BMP or QOI are accepted. ``ImageFacts/damage``
    /// then describes the damage.
    public var acceptsDamage: Bool

    public init(firstFrameSuffices: Bool = false, acceptsDamage: Bool = false) {
        self.firstFrameSuffices = firstFrameSuffices
        self.acceptsDamage = acceptsDamage
    }
}

/// The visible part of a picture that is still arriving.
public struct PreviewReport: Codable, Hashable, Sendable {
    public let format: ImageFormat
    /// Of the whole picture, in pixels, as stored.
    public let width: Int
    public let height: Int
    /// Rows from the top that the preview shows; 0 if there is none yet. A progressive JPEG shows all rows, coarsely,
    /// as soon as its first scan is complete.
    public let rows: Int

    package init(format: ImageFormat, width: Int, height: Int, rows: Int) {
        (self.format, self.width, self.height, self.rows) = (format, width, height, rows)
    }
}

/// Stand-ins for a picture that is not loaded: a colour, two blurred versions and a hash for comparisons.
///
/// Computed from pixels that were decoded for a variant, so they cost a few hundred microseconds and no second decode.
/// Of the first frame.
public struct Placeholders: Codable, Hashable, Sendable {
    /// `#rrggbb`; nil if every pixel is transparent.
    public let dominantColour: String?
    /// 4×3 components, 28 characters. Transparent pixels count as white.
    public let blurHash: String
    /// Base64, up to 32 characters, with aspect ratio and alpha.
    public let thumbHash: String
    /// 64 bits, most significant first; nil for a picture without structure. See ``PerceptualHash``.
    public let perceptualHash: Int64?

    public init(dominantColour: String?, blurHash: String, thumbHash: String, perceptualHash: Int64?) {
        self.dominantColour = dominantColour
        self.blurHash = blurHash
        self.thumbHash = thumbHash
        self.perceptualHash = perceptualHash
    }
}
