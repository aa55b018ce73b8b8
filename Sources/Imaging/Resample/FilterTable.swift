internal import Glibc
import ImageFiles

/// The old pixels of a line that make each new one, and their weights: Lanczos 3, stretched by the factor of the
/// shrink.
///
/// Pixels beyond an end have the value of the end, and weights add up to 1.
/// Source: K. Turkowski, "Filters for Common Resampling Tasks", Graphics Gems I, 1990.
struct FilterTable: Sendable {
    /// The old pixels of one new pixel.
    struct Window: Sendable {
        /// The first old pixel.
        let start: Int
        /// The offset of its weights in ``FilterTable/weights``.
        let offset: Int
        let count: Int

        var end: Int { start + count }
    }

    /// One for each new pixel, from left to right; starts and ends never decrease.
    let windows: [Window]
    /// Each weight in all four lanes, since spreading one costs as much as the multiplication.
    let weights: [SIMD4<Float>]
    /// Maximum windows that contain the same old pixel. Does not grow with the shrink.
    let overlap: Int

    /// Old pixels on either side of a new one, at a shrink of 1.
    private static let lobes = 3.0

    /// - Parameters:
    ///   - from: pixels of the old line, 1 or more.
    ///   - to: pixels of the new one: 1 up to `from`.
    init(from: Int, to: Int) {
        precondition(to >= 1 && to <= from, "a line is shrunk here, never stretched")
        let shrink = Double(from) / Double(to)
        var windows: [Window] = []
        var weights: [SIMD4<Float>] = []
        windows.reserveCapacity(to)
        for pixel in 0..<to {
            let centre = (Double(pixel) + 0.5) * shrink - 0.5
            let (start, found) = Self.window(around: centre, shrink: shrink, length: from)
            windows.append(Window(start: start, offset: weights.count, count: found.count))
            weights.append(contentsOf: found.map { SIMD4(repeating: $0) })
        }
        self.windows = windows
        self.weights = weights
        overlap = Self.overlap(of: windows)
    }

    private static func window(around centre: Double, shrink: Double, length: Int) -> (start: Int, weights: [Float]) {
        let reach = lobes * shrink
        let reached = Int((centre - reach).rounded(.up))...Int((centre + reach).rounded(.down))
        let inside = max(0, reached.lowerBound)...min(length - 1, reached.upperBound)
        var weights = [Double](repeating: 0, count: inside.count)
        for pixel in reached {
            let nearest = min(max(pixel, inside.lowerBound), inside.upperBound)
            weights[nearest - inside.lowerBound] += lanczos((Double(pixel) - centre) / shrink)
        }
        let sum = weights.reduce(0, +)
        // Without a shrink, all weights but one are zero and need not be multiplied.
        let kept = weights.indices.filter { abs(weights[$0] / sum) > 1e-6 }
        let first = kept.first ?? 0
        let last = kept.last ?? weights.count - 1
        return (inside.lowerBound + first, weights[first...last].map { Float($0 / sum) })
    }

    private static func lanczos(_ x: Double) -> Double {
        if x == 0 { return 1 }
        guard abs(x) < lobes else { return 0 }
        let angle = Double.pi * x
        return lobes * sin(angle) * sin(angle / lobes) / (angle * angle)
    }

    private static func overlap(of windows: [Window]) -> Int {
        var oldest = 0
        var most = 0
        for (index, window) in windows.enumerated() {
            while windows[oldest].end <= window.start { oldest += 1 }
            most = max(most, index - oldest + 1)
        }
        return most
    }
}
