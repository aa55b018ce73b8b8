/// The view of similar pictures, and the columns that make it fast.
///
/// It finds perceptual hashes that differ in at most 6 of 64 bits. Each hash is split into four bands of 16 bits. Six
/// flipped bits leave at least one band with at most one of them, so it is enough to look up each band as it is and
/// with each of its bits flipped: 68 look-ups per picture instead of a comparison with every other picture.
extension CacheSchema {
    /// The columns of `source_facts` for the bands.
    static let hashBands = bands.map { "\($0.name) INTEGER AS ((phash >> \($0.shift)) & 65535) VIRTUAL" }
        .joined(separator: ",\n    ")
    static let hashBandIndices = bands.map {
        "CREATE INDEX source_facts_\($0.name) ON source_facts (\($0.name), phash) WHERE phash IS NOT NULL;"
    }.joined(separator: "\n")

    /// Every pair appears in both directions, so that WHERE url = '…' quickly finds all similar pictures.
    static let nearDuplicates = """
        CREATE VIEW near_duplicates AS
            WITH flips (bit) AS (VALUES \(flips))
            \(bands.map(\.pairs).joined(separator: "\n    UNION ALL\n    "));
        """

    private static let flips = ([0] + (0..<16).map { 1 << $0 }).map { "(\($0))" }.joined(separator: ", ")

    private static let bands = (0..<4).map(HashBand.init)
}

/// 16 bits of a perceptual hash.
private struct HashBand {
    let number: Int

    var name: String { "band\(number)" }
    var shift: Int { number * 16 }

    /// The pairs whose hashes differ in at most one bit in this band, and at most six bits in total.
    ///
    /// CROSS JOIN forces SQLite to go from one picture to the others, never in the opposite direction. Pairs that an
    /// earlier band finds are excluded here rather than by UNION, into which SQLite pushes no condition on `url`.
    var pairs: String {
        """
        SELECT one.key AS url, other.key AS near_url, \(Self.distance) AS distance
            FROM sources AS one CROSS JOIN source_facts AS a ON a.hash = one.hash
            CROSS JOIN flips
            CROSS JOIN source_facts AS b ON b.\(name) = (a.\(name) | bit) - (a.\(name) & bit)
            CROSS JOIN sources AS other ON other.hash = b.hash
            WHERE a.phash IS NOT NULL AND b.phash IS NOT NULL AND \(Self.distance) <= 6 AND other.key <> one.key\(isNew)
        """
    }

    private var isNew: String {
        (0..<number).map { earlier in
            let flipped = "((\(Self.xor) >> \(earlier * 16)) & 65535)"
            return " AND \(flipped) & (\(flipped) - 1) <> 0"
        }.joined()
    }

    private static let xor = "((a.phash | b.phash) - (a.phash & b.phash))"

    /// The number of bits in which `a.phash` and `b.phash` differ. It computes XOR and adds up its ones in pairs, in
    /// groups of four and in bytes; the sum of the bytes is the remainder by 255. The sign bit is counted separately,
    /// or the sums would overflow.
    private static let distance: String = {
        let bits = "(\(xor) & \(Int64.max))"
        let pairs = "(\(bits) - ((\(bits) >> 1) & \(0x5555_5555_5555_5555)))"
        let fours = "((\(pairs) & \(0x3333_3333_3333_3333)) + ((\(pairs) >> 2) & \(0x3333_3333_3333_3333)))"
        return "(((\(fours) + (\(fours) >> 4)) & \(0x0f0f_0f0f_0f0f_0f0f)) % 255 + (\(xor) < 0))"
    }()
}
