/// What an image's header says, and what its pixels told if any were decoded.
public struct ImageFacts: Codable, Hashable, Sendable {
    /// ``ImageFormat``'s, or that of a registered coder.
    public let formatName: String
    /// In pixels, as seen: after its orientation is applied. Of the first frame.
    public let width: Int
    public let height: Int
    /// Frames or pages; 1 for a still.
    public let frames: Int
    /// Whether there is an alpha channel, used or not.
    public let hasAlpha: Bool
    /// Nil where no pixel was decoded.
    public var placeholders: Placeholders?
    /// What is wrong with a file of which something was made all the same; nil where it is whole.
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

    /// Nil where only a registered coder knows it.
    public var format: ImageFormat? { ImageFormat(rawValue: formatName) }
}

/// A variant as it was written.
public struct Rendition: Codable, Hashable, Sendable {
    public let name: String
    /// In pixels.
    public let width: Int
    public let height: Int
    /// ``ImageFormat``'s, or that of a registered coder.
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

    /// Nil where only a registered coder knows it.
    public var format: ImageFormat? { ImageFormat(rawValue: formatName) }
}

/// What a transform found and made.
public struct TransformReport: Codable, Hashable, Sendable {
    public let facts: ImageFacts
    /// In the order they were asked for.
    public let renditions: [Rendition]

    public init(facts: ImageFacts, renditions: [Rendition]) {
        self.facts = facts
        self.renditions = renditions
    }
}

/// What may be wrong with a source that something is made of all the same.
public struct DecodeTolerance: Codable, Hashable, Sendable {
    /// The later frames of an animation are judged by the file's structure alone where no variant moves.
    public var firstFrameSuffices: Bool
    /// Of a damaged JPEG, PNG, GIF, WebP, BMP or QOI the pixels that can be decoded are taken, and
    /// ``ImageFacts/damage`` says so.
    public var acceptsDamage: Bool

    public init(firstFrameSuffices: Bool = false, acceptsDamage: Bool = false) {
        self.firstFrameSuffices = firstFrameSuffices
        self.acceptsDamage = acceptsDamage
    }
}
