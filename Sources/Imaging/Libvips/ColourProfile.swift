import ImageFiles

/// Reads an ICC profile to find out whether it is sRGB, so that the conversion can be skipped.
///
/// It checks the numbers and not the name: the primaries and the curve of a matrix profile (ICC.1:2010, sections 7 to
/// 10). If in doubt it answers no; then the conversion runs without visible change.
struct ColourProfile {
    private let reader: ByteReader

    init(_ bytes: UnsafeRawBufferPointer) { reader = ByteReader(bytes) }

    /// Whether it is a complete device profile: for grey if the picture has one colour channel, otherwise for red,
    /// green and blue. Encoders refuse others, and libjxl ends the process over some of them. ICC.1:2010, 7.2 and 7.3.
    func isWhole(channels: Int) -> Bool {
        guard reader.big(4, at: 0) == reader.count, reader.has("acsp", at: 36),
            reader.has(channels < 3 ? "GRAY" : "RGB ", at: 16),
            reader.has("XYZ ", at: 20) || reader.has("Lab ", at: 20),
            ["mntr", "scnr", "prtr", "spac"].contains(where: { reader.has($0, at: 12) }),
            let count = reader.big(4, at: 128), (1...100).contains(count),
            reader.contains(132, length: 12 * count)
        else { return false }
        return (0..<count).allSatisfy { index in
            guard let offset = reader.big(4, at: 136 + 12 * index), let length = reader.big(4, at: 140 + 12 * index)
            else { return false }
            return length >= 8 && reader.contains(offset, length: length)
        }
    }

    /// Whether it is a profile, for red, green and blue.
    var isOfRGB: Bool { reader.has("acsp", at: 36) && reader.has("RGB ", at: 16) }

    var isSRGB: Bool {
        reader.has("RGB ", at: 16) && hasPrimaries && ["rTRC", "gTRC", "bTRC"].allSatisfy(isSRGBCurve)
            // A profile with tables is applied by its tables, not by its matrix.
            && tag("A2B0") == nil && tag("A2B1") == nil
    }

    /// IEC 61966-2-1, adapted to D50 as in every profile.
    private static let primaries: [(String, [Double])] = [
        ("rXYZ", [0.4361, 0.2225, 0.0139]), ("gXYZ", [0.3851, 0.7169, 0.0971]), ("bXYZ", [0.1431, 0.0606, 0.7141]),
    ]

    private var hasPrimaries: Bool {
        Self.primaries.allSatisfy { name, expected in
            guard let offset = tag(name) else { return false }
            return expected.indices.allSatisfy { index in
                guard let value = fixed(at: offset + 8 + 4 * index) else { return false }
                return abs(value - expected[index]) < 0.002
            }
        }
    }

    private func tag(_ name: String) -> Int? {
        guard let count = reader.big(4, at: 128), count <= 100 else { return nil }
        for index in 0..<count where reader.has(Array(name.utf8), at: 132 + 12 * index) {
            return reader.big(4, at: 136 + 12 * index)
        }
        return nil
    }

    private func fixed(at offset: Int) -> Double? {
        reader.big(4, at: offset).map { Double(Int32(truncatingIfNeeded: $0)) / 65_536 }
    }

    private func isSRGBCurve(_ name: String) -> Bool {
        guard let offset = tag(name) else { return false }
        if reader.has("para", at: offset) { return isSRGBFormula(at: offset) }
        guard reader.has("curv", at: offset), let count = reader.big(4, at: offset + 8), count > 255 else {
            return false
        }
        return [0.02, 0.1, 0.25, 0.5, 0.75, 0.9].allSatisfy { point in
            let index = Int((point * Double(count - 1)).rounded())
            guard let value = reader.big(2, at: offset + 12 + 2 * index) else { return false }
            return abs(Double(value) / 65_535 - Self.linear(Double(index) / Double(count - 1))) < 0.002
        }
    }

    /// Function type 3 with sRGB's own g, a, b, c, d.
    private func isSRGBFormula(at offset: Int) -> Bool {
        guard reader.big(2, at: offset + 8) == 3 else { return false }
        let formula: [Double] = [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045]
        return zip(formula, 0...).allSatisfy { expected, index in
            guard let value = fixed(at: offset + 12 + 4 * index) else { return false }
            return abs(value - expected) < 0.001
        }
    }

    /// sRGB's curve for a table; pow() would be the only need for a math library.
    private static func linear(_ value: Double) -> Double {
        value <= 0.04045 ? value / 12.92 : power24((value + 0.055) / 1.055)
    }

    /// x to the 2.4 as x² · (x²)^(1/5), the fifth root by Newton's method.
    private static func power24(_ x: Double) -> Double {
        let square = x * x
        var root = 1.0
        for _ in 0..<40 { root -= (root - square / (root * root * root * root)) / 5 }
        return square * root
    }
}
