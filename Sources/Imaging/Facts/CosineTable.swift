internal import Glibc

/// The waves that a picture is taken apart into: `wave` half turns over `count` pixels.
struct CosineTable {
    private let values: [Double]
    private let count: Int

    /// - Parameter phase: where in its pixel a wave is measured: 0.5 is the middle.
    init(waves: Int, over count: Int, phase: Double) {
        self.count = count
        values = (0..<(waves * count)).map { index in
            cos(Double.pi * Double(index / count) * (Double(index % count) + phase) / Double(count))
        }
    }

    @inline(__always)
    subscript(wave: Int, place: Int) -> Double { values[wave * count + place] }
}

/// Brightness, or a channel of colour, as numbers.
struct Plane {
    let width: Int
    let height: Int
    let values: [Double]

    /// How strong each wave is in it: sums over all pixels, one row of the result for each wave down the picture.
    ///
    /// Rows first, then columns: the waves of both axes are independent.
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
