/// What an image's header says, and what its pixels told if any were decoded.
public struct ImageFacts: Codable, Hashable, Sendable {
    public let format: ImageFormat
    /// In pixels, as seen: after its orientation is applied. Of the first frame.
    public let width: Int
    public let height: Int
    /// Frames or pages; 1 for a still.
    public let frames: Int
    /// Whether there is an alpha channel, used or not.
    public let hasAlpha: Bool
    /// Nil where no pixel was decoded, as for a source that is only kept.
    public var placeholders: Placeholders?

    public init(
        format: ImageFormat, width: Int, height: Int, frames: Int, hasAlpha: Bool, placeholders: Placeholders? = nil,
    ) {
        self.format = format
        self.width = width
        self.height = height
        self.frames = frames
        self.hasAlpha = hasAlpha
        self.placeholders = placeholders
    }
}

/// A variant as it was written.
public struct Rendition: Codable, Hashable, Sendable {
    public let name: String
    /// In pixels.
    public let width: Int
    public let height: Int
    public let format: ImageFormat

    public init(name: String, width: Int, height: Int, format: ImageFormat) {
        self.name = name
        self.width = width
        self.height = height
        self.format = format
    }
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
