/// Placeholders made from a source's pixels, and a hash to find similar sources.
public struct ImagePlaceholders: Hashable, Sendable, Codable {
    /// `#rrggbb`; nil if every pixel is transparent.
    public var dominantColour: String?
    public var blurHash: String
    /// Base64.
    public var thumbHash: String
    /// 64 bits, as SQLite stores them; nil for a picture without structure.
    public var perceptualHash: Int64?
    /// The damage of a source that was decoded anyway (`accept-damaged`).
    public var damage: String?

    public init(
        dominantColour: String?, blurHash: String, thumbHash: String, perceptualHash: Int64?, damage: String? = nil,
    ) {
        self.dominantColour = dominantColour
        self.blurHash = blurHash
        self.thumbHash = thumbHash
        self.perceptualHash = perceptualHash
        self.damage = damage
    }

    /// The columns of `source_facts`, each with its type.
    static let columns = [
        (name: "dominant_colour", type: "TEXT"), (name: "blurhash", type: "TEXT NOT NULL"),
        (name: "thumbhash", type: "TEXT NOT NULL"), (name: "phash", type: "INTEGER"), (name: "damage", type: "TEXT"),
    ]

    /// In the order of the columns.
    var values: SQLValues { [dominantColour, blurHash, thumbHash, perceptualHash, damage] }

    /// Nil if no pixel of the source was decoded.
    ///
    /// - Parameters:
    ///   - text: the text in a column, counted from zero.
    init?(text: (CInt) -> String?, number: (CInt) -> Int64?) {
        guard let blurHash = text(1), let thumbHash = text(2) else { return nil }
        self.init(
            dominantColour: text(0), blurHash: blurHash, thumbHash: thumbHash, perceptualHash: number(3),
            damage: text(4))
    }

    /// The perceptual hash in 16 hexadecimal digits.
    public var perceptualHex: String? {
        perceptualHash.map { hash in
            let digits = String(UInt64(bitPattern: hash), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }
    }

    enum CodingKeys: String, CodingKey {
        case dominantColour = "dominant_colour", blurHash = "blurhash", thumbHash = "thumbhash", perceptualHex = "phash"
        case damage
    }

    /// As in the view `results`: the hash in digits, since JSON readers lose the lower bits of large numbers.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(dominantColour, forKey: .dominantColour)
        try container.encode(blurHash, forKey: .blurHash)
        try container.encode(thumbHash, forKey: .thumbHash)
        try container.encodeIfPresent(perceptualHex, forKey: .perceptualHex)
        try container.encodeIfPresent(damage, forKey: .damage)
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        dominantColour = try container.decodeIfPresent(String.self, forKey: .dominantColour)
        blurHash = try container.decode(String.self, forKey: .blurHash)
        thumbHash = try container.decode(String.self, forKey: .thumbHash)
        perceptualHash = try container.decodeIfPresent(String.self, forKey: .perceptualHex)
            .flatMap { UInt64($0, radix: 16) }.map { Int64(bitPattern: $0) }
        damage = try container.decodeIfPresent(String.self, forKey: .damage)
    }
}
