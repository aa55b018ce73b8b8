import ImageFiles

/// A blurred picture like ``BlurHash``, with aspect ratio and alpha and truer colours, in some 25 bytes.
///
/// Evan Wallace's algorithm, <https://evanw.github.io/thumbhash/>: the amplitudes of the lowest waves of brightness,
/// two colour differences and the alpha, four bits each.
struct ThumbHash: Equatable {
    let bytes: [UInt8]

    /// - Parameter picture: no side longer than 100 pixels.
    init(of picture: Miniature) {
        precondition(picture.width <= 100 && picture.height <= 100)
        let planes = ColourPlanes(of: picture)
        let longer = Double(max(picture.width, picture.height))
        // Brightness has fewer waves if there is alpha.
        let limit = planes.hasAlpha ? 5.0 : 7.0
        let columns = max(1, Int((limit * Double(picture.width) / longer).rounded()))
        let rows = max(1, Int((limit * Double(picture.height) / longer).rounded()))
        let brightness = Channel(planes.brightness, columns: max(3, columns), rows: max(3, rows))
        let yellow = Channel(planes.yellow, columns: 3, rows: 3)
        let red = Channel(planes.red, columns: 3, rows: 3)
        let alpha = planes.hasAlpha ? Channel(planes.alpha, columns: 5, rows: 5) : nil
        let isLandscape = picture.width > picture.height

        let colours =
            Self.quantised(brightness.mean, 63) | Self.quantised(0.5 + 0.5 * yellow.mean, 63) << 6
            | Self.quantised(0.5 + 0.5 * red.mean, 63) << 12 | Self.quantised(brightness.scale, 31) << 18
            | (planes.hasAlpha ? 1 : 0) << 23
        let shape =
            (isLandscape ? rows : columns) | Self.quantised(yellow.scale, 63) << 3
            | Self.quantised(red.scale, 63) << 9 | (isLandscape ? 1 : 0) << 15
        var bytes = [colours, colours >> 8, colours >> 16, shape, shape >> 8].map { UInt8($0 & 255) }
        if let alpha { bytes.append(UInt8(Self.quantised(alpha.mean, 15) | Self.quantised(alpha.scale, 15) << 4)) }
        let details = [brightness, yellow, red, alpha].compactMap { $0?.details }.joined()
        self.bytes = bytes + Self.halves(details.map { Self.quantised($0, 15) })
    }

    var base64: String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for digit in 0...3 {
                text.append(digit <= group.count ? alphabet[bits >> (18 - 6 * digit) & 63] : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Maps 0…1 to whole steps up to `top`.
    private static func quantised(_ value: Double, _ top: Double) -> Int {
        Int((max(0, min(1, value)) * top).rounded())
    }

    /// Two values in a byte, the first in its lower half.
    private static func halves(_ values: [Int]) -> [UInt8] {
        stride(from: 0, to: values.count, by: 2).map { index in
            UInt8(values[index] | (index + 1 < values.count ? values[index + 1] << 4 : 0))
        }
    }

    /// The waves of a plane: the mean, and the others scaled to 0…1 by the strongest.
    private struct Channel {
        let mean: Double
        let scale: Double
        let details: [Double]

        /// - Parameter columns: waves across; only the upper left triangle of the waves is kept.
        init(_ plane: Plane, columns: Int, rows: Int) {
            let pixels = Double(plane.width * plane.height)
            let waves = plane.waves(columns: columns, rows: rows, phase: 0.5).map { $0 / pixels }
            var kept: [Double] = []
            for row in 0..<rows {
                for column in 0..<columns where row + column > 0 && column * rows < columns * (rows - row) {
                    kept.append(waves[row * columns + column])
                }
            }
            let peak = kept.reduce(0) { max($0, abs($1)) }
            mean = waves[0]
            scale = peak
            details = peak > 0 ? kept.map { 0.5 + 0.5 / peak * $0 } : kept
        }
    }
}

/// The planes of ThumbHash: brightness, yellow against blue, red against green, and the alpha.
private struct ColourPlanes {
    let brightness: Plane
    let yellow: Plane
    let red: Plane
    let alpha: Plane
    let hasAlpha: Bool

    /// Composes the picture on its own average colour, so that transparent parts add no waves.
    init(of picture: Miniature) {
        let bytes = picture.bytes
        let alpha = stride(from: 3, to: bytes.count, by: 4).map { Double(bytes[$0]) / 255 }
        let visible = alpha.reduce(0, +)
        let channels = (0..<3).map { channel in
            let seen = alpha.indices.map { alpha[$0] / 255 * Double(bytes[4 * $0 + channel]) }
            let average = visible > 0 ? seen.reduce(0, +) / visible : 0
            return alpha.indices.map { average * (1 - alpha[$0]) + seen[$0] }
        }
        func plane(_ value: (Int) -> Double) -> Plane {
            Plane(width: picture.width, height: picture.height, values: alpha.indices.map(value))
        }
        let (r, g, b) = (channels[0], channels[1], channels[2])
        brightness = plane { (r[$0] + g[$0] + b[$0]) / 3 }
        yellow = plane { (r[$0] + g[$0]) / 2 - b[$0] }
        red = plane { r[$0] - g[$0] }
        self.alpha = plane { alpha[$0] }
        hasAlpha = bytes.indices.contains { $0 & 3 == 3 && bytes[$0] < 255 }
    }
}
