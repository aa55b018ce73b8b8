/// What the pixels of a source told: placeholders for it, and a hash to find those that look alike.
public struct SourceLooks: Hashable, Sendable, Codable {
    /// `#rrggbb`; nil where every pixel is transparent.
    public var dominantColour: String?
    public var blurHash: String
    /// Base64.
    public var thumbHash: String
    /// 64 bits, as SQLite stores them; nil for a picture without structure.
    public var perceptualHash: Int64?
    /// What is wrong with a source of which something was made all the same (`accept-damaged`).
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

    /// The perceptual hash for people, in 16 digits.
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

    /// As in the view `results`: the hash in digits, since JSON's readers lose the lower bits of large numbers.
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
