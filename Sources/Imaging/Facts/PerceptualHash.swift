internal import Glibc
import ImageFiles

/// A hash of 64 bits that is similar for pictures that look alike, at any size, format and quality.
///
/// The DCT hash of Christoph Zauner's thesis, <https://www.phash.org/docs/pubs/thesis_zauner.pdf>, in the form of
/// Python's `imagehash.phash`: brightness of 32×32 pixels, its 8×8 lowest waves by rows, and a bit for each that is
/// above their median, most significant first. Copies differ in a few bits, others in about 32.
struct PerceptualHash: Equatable {
    /// The side of the square from which it is computed, in pixels.
    static let side = 32

    let bits: UInt64

    init(bits: UInt64) { self.bits = bits }

    /// The same bits, as SQLite stores them.
    var signed: Int64 { Int64(bitPattern: bits) }

    /// - Parameter picture: ``side`` pixels wide and high; its alpha is ignored.
    /// - Returns: nil for a picture without structure: its bits would be noise, and all such pictures would be alike.
    init?(of picture: Miniature) {
        precondition(picture.width == Self.side && picture.height == Self.side)
        let waves = picture.brightness.waves(columns: 8, rows: 8, phase: 0.5)
        let pixels = Double(Self.side * Self.side)
        guard waves.dropFirst().contains(where: { abs($0) / pixels >= Self.faintest }) else { return nil }
        let sorted = waves.sorted()
        let median = (sorted[31] + sorted[32]) / 2
        bits = waves.reduce(0) { $0 << 1 | ($1 > median ? 1 : 0) }
    }

    func distance(to other: PerceptualHash) -> Int { (bits ^ other.bits).nonzeroBitCount }

    /// The mean amplitude that counts as structure, in steps of 255: about one visible step.
    private static let faintest = 0.5
}

extension Miniature {
    /// Uses the weights of ITU-R BT.601, as JPEG does.
    fileprivate var brightness: Plane {
        Plane(
            width: width, height: height,
            values: stride(from: 0, to: bytes.count, by: 4).map { pixel -> Double in
                let red = Int(bytes[pixel])
                let green = Int(bytes[pixel + 1])
                let blue = Int(bytes[pixel + 2])
                let sum: Int = 299 * red + 587 * green + 114 * blue
                return Double(sum) / 1_000
            })
    }
}

/// The cosine waves of a picture: `wave` half turns over `count` pixels.
struct CosineTable {
    private let values: [Double]
    private let count: Int

    /// - Parameter phase: the point of a pixel at which a wave is measured; 0.5 is the middle.
    init(waves: Int, over count: Int, phase: Double) {
        self.count = count
        values = (0..<(waves * count)).map { index in
            cos(Double.pi * Double(index / count) * (Double(index % count) + phase) / Double(count))
        }
    }

    @inline(__always)
    subscript(wave: Int, place: Int) -> Double { values[wave * count + place] }
}

/// Brightness or a colour channel, as numbers.
struct Plane {
    let width: Int
    let height: Int
    let values: [Double]

    /// The amplitude of each wave: sums over all pixels, one row of the result for each wave down the picture.
    ///
    /// Rows first, then columns: the waves of the two axes are independent.
    func waves(columns: Int, rows: Int, phase: Double) -> [Double] {
        let across = CosineTable(waves: columns, over: width, phase: phase)
        let down = CosineTable(waves: rows, over: height, phase: phase)
        var result = [Double](repeating: 0, count: columns * rows)
        for y in 0..<height {
            for column in 0..<columns {
                var sum = 0.0
                for x in 0..<width { sum += values[y * width + x] * across[column, x] }
                for row in 0..<rows { result[row * columns + column] += sum * down[row, y] }
            }
        }
        return result
    }
}
