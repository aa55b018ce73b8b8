internal import Core
internal import Imaging
internal import Jobs

extension SourceRecord {
    /// The same bytes have the same facts; no pixel needs to be looked at again.
    mutating func takeFacts(from known: SourceRecord) {
        format = known.format
        width = known.width
        height = known.height
        frames = known.frames
        hasAlpha = known.hasAlpha
        looks = known.looks
    }

    /// The record with the facts that its pixels told.
    func with(_ facts: ImageFacts) -> SourceRecord {
        var source = self
        source.format = facts.formatName
        source.width = facts.width
        source.height = facts.height
        source.frames = facts.frames
        source.hasAlpha = facts.hasAlpha
        source.looks = facts.placeholders.flatMap(ImagePlaceholders.init) ?? source.looks
        source.looks?.damage = facts.damage.map { Failure(.badImage, $0).message }
        return source
    }
}

extension ImagePlaceholders {
    /// Nil if they aren't valid placeholders: they come from a helper that a picture may have taken over, and end up in
    /// other people's web pages.
    init?(_ placeholders: Placeholders) {
        let colour = placeholders.dominantColour
        guard colour.map({ $0.utf8.count == 7 && $0.hasPrefix("#") && Self.isHex($0.dropFirst()) }) ?? true,
            placeholders.blurHash.utf8.count <= 64, !Self.isMarkup(placeholders.blurHash),
            placeholders.thumbHash.utf8.count <= 64, !Self.isMarkup(placeholders.thumbHash)
        else { return nil }
        self.init(
            dominantColour: colour, blurHash: placeholders.blurHash, thumbHash: placeholders.thumbHash,
            perceptualHash: placeholders.perceptualHash,
        )
    }

    private static func isHex(_ text: Substring) -> Bool {
        text.utf8.allSatisfy { Character(UnicodeScalar($0)).isHexDigit }
    }

    /// Whether it has characters that neither base 83 nor base 64 uses and that mean something in HTML or a terminal.
    private static func isMarkup(_ text: String) -> Bool {
        text.utf8.contains { $0 <= 0x22 || $0 >= 0x7F || "&'<>".utf8.contains($0) }
    }
}
