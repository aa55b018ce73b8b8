internal import Glibc
import ImageFiles
import Variants

/// The share of each pixel that a rectangle with round corners covers: 0 to 1, smooth along its edge.
struct RoundedCorners {
    let size: PixelSize
    /// In pixels; at most half of the shorter side has an effect.
    let radius: Double
    let corners: Set<String>

    /// - Parameter inset: the distance of the rectangle from the edge; its corners keep their centres.
    func coverage(x: Int, y: Int, inset: Double = 0) -> Double {
        min(max(0.5 - distance(Double(x) + 0.5, Double(y) + 0.5) - inset, 0), 1)
    }

    /// Distance from the edge in pixels, negative inside. (The usual signed distance of a rounded box.)
    private func distance(_ x: Double, _ y: Double) -> Double {
        let half = (width: Double(size.width) / 2, height: Double(size.height) / 2)
        let vertical = y < half.height ? "top" : "bottom"
        let horizontal = x < half.width ? "left" : "right"
        let isRound = corners.contains("\(vertical)-\(horizontal)")
        let radius = isRound ? min(radius, half.width, half.height) : 0
        let dx = abs(x - half.width) - half.width + radius
        let dy = abs(y - half.height) - half.height + radius
        let outside = (max(dx, 0) * max(dx, 0) + max(dy, 0) * max(dy, 0)).squareRoot()
        return outside + min(max(dx, dy), 0) - radius
    }
}

extension Picture {
    /// - Parameter border: its width in pixels, drawn inside the edge.
    func rounded(
        radius: Double, corners: [String], border: Double, _ colour: Colour,
    ) throws(VipsFailure) -> Picture {
        let canvas = try asRGBA()
        let shape = RoundedCorners(size: canvas.storedSize, radius: radius, corners: Set(corners))
        var pixels = try canvas.withPixels { Array($0) }
        for y in 0..<shape.size.height {
            for x in 0..<shape.size.width where shape.isNearEdge(x: x, y: y, within: max(radius, border) + 2) {
                let start = (y * shape.size.width + x) * 4
                shape.draw(&pixels, at: start, x: x, y: y, border: border, colour)
            }
        }
        return try Picture(rgba: pixels, shape.size)
    }
}

extension RoundedCorners {
    /// Whether the pixel is near the edge; only such pixels can change.
    fileprivate func isNearEdge(x: Int, y: Int, within margin: Double) -> Bool {
        let margin = Int(min(margin.rounded(.up), 1e6))
        return x < margin || y < margin || x >= size.width - margin || y >= size.height - margin
    }

    fileprivate func draw(
        _ pixels: inout [UInt8], at start: Int, x: Int, y: Int, border: Double, _ colour: Colour,
    ) {
        let inside = coverage(x: x, y: y)
        if border > 0 {
            let line = (inside - coverage(x: x, y: y, inset: border)) * Double(colour.alpha) / 255
            let under = Double(pixels[start + 3]) / 255
            let alpha = line + under * (1 - line)
            for (channel, value) in [colour.red, colour.green, colour.blue].enumerated() where alpha > 0 {
                let below = Double(pixels[start + channel]) * under * (1 - line)
                pixels[start + channel] = Self.byte((Double(value) * line + below) / alpha)
            }
            pixels[start + 3] = Self.byte(alpha * 255)
        }
        pixels[start + 3] = Self.byte(Double(pixels[start + 3]) * inside)
    }

    private static func byte(_ value: Double) -> UInt8 { UInt8(min(max(value.rounded(), 0), 255)) }
}
