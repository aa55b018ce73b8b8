internal import Core
internal import ImageFiles
internal import Jobs

extension SourceRecord {
    /// Takes the facts of a known source with the same bytes, so that it need not be decoded again.
    mutating func takeFacts(from known: SourceRecord) {
        format = known.format
        width = known.width
        height = known.height
        frames = known.frames
        hasAlpha = known.hasAlpha
        looks = known.looks
    }

    /// The record with the facts from its pixels.
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
    /// Nil for invalid placeholders. They come from a helper, which a picture may have taken over, and other people's
    /// web pages may show them.
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

    /// Whether it has characters outside base 83 and base 64 with a meaning in HTML or for a terminal.
    private static func isMarkup(_ text: String) -> Bool {
        text.utf8.contains { $0 <= 0x22 || $0 >= 0x7F || "&'<>".utf8.contains($0) }
    }
}
