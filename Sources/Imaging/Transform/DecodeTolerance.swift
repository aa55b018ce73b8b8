/// What may be wrong with a source that something is made of all the same.
public struct DecodeTolerance: Codable, Hashable, Sendable {
    /// The later frames of an animation are judged by the file's structure alone where no variant moves.
    public var firstFrameSuffices: Bool
    /// Of a damaged JPEG, PNG, GIF, WebP or BMP what a browser would show of it is taken, and ``ImageFacts/damage`` says so.
    public var acceptsDamage: Bool

    public init(firstFrameSuffices: Bool = false, acceptsDamage: Bool = false) {
        self.firstFrameSuffices = firstFrameSuffices
        self.acceptsDamage = acceptsDamage
    }
}
