import ImageFiles

/// A picture of a few thousand pixels: red, green, blue and alpha of a byte each, not premultiplied.
struct Miniature: Equatable {
    let width: Int
    let height: Int
    let bytes: [UInt8]

    /// The longer side, in pixels. ThumbHash accepts up to 100; the hashes here need no finer waves than eight to a
    /// side.
    static let side = 64

    /// - Parameter bytes: four for each of `width` × `height` pixels, by rows.
    init(width: Int, height: Int, bytes: [UInt8]) {
        precondition(width > 0 && height > 0 && bytes.count == width * height * 4)
        self.width = width
        self.height = height
        self.bytes = bytes
    }

    /// Samples 4×4 points for each pixel and takes their mean, weighted by their alpha.
    ///
    /// It samples points, since filtering all of a large picture would take longer than computing the hashes.
    ///
    /// - Parameters:
    ///   - pixels: by rows, a byte a channel.
    ///   - channels: 1 grey, 2 grey and alpha, 3 or 4 for colours.
    init(sampling pixels: UnsafeRawBufferPointer, of size: PixelSize, channels: Int, width: Int, height: Int) {
        precondition(pixels.count >= size.pixels * channels && (1...4).contains(channels))
        let columns = Self.points(width, of: size.width).map { $0 * channels }
        let rows = Self.points(height, of: size.height).map { $0 * size.width * channels }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(width * height * 4)
        for y in 0..<height {
            for x in 0..<width {
                var mean = WeightedMean()
                for row in rows[(y * Self.points)..<((y + 1) * Self.points)] {
                    for column in columns[(x * Self.points)..<((x + 1) * Self.points)] {
                        mean.add(pixels, at: row + column, channels: channels)
                    }
                }
                mean.write(to: &bytes)
            }
        }
        self.init(width: width, height: height, bytes: bytes)
    }

    func resampled(width: Int, height: Int) -> Miniature {
        bytes.withUnsafeBytes {
            Miniature(
                sampling: $0, of: PixelSize(width: self.width, height: self.height), channels: 4, width: width,
                height: height)
        }
    }

    /// Without transparency, as formats without alpha show it.
    var onWhite: Miniature {
        var flat = bytes
        for pixel in stride(from: 0, to: flat.count, by: 4) {
            let alpha = Int(flat[pixel + 3])
            for channel in pixel..<(pixel + 3) {
                flat[channel] = UInt8((Int(flat[channel]) * alpha + 255 * (255 - alpha) + 127) / 255)
            }
            flat[pixel + 3] = 255
        }
        return Miniature(width: width, height: height, bytes: flat)
    }

    /// Sampled points for each pixel along each axis.
    private static let points = 4

    /// The positions to sample along an axis of `length`, ``points`` for each of `count` pixels.
    private static func points(_ count: Int, of length: Int) -> [Int] {
        (0..<(count * points)).map { (2 * $0 + 1) * length / (2 * count * points) }
    }
}

/// The mean of points, weighted by their alpha.
private struct WeightedMean {
    private var red = 0, green = 0, blue = 0, alpha = 0, count = 0

    @inline(__always)
    mutating func add(_ pixels: UnsafeRawBufferPointer, at place: Int, channels: Int) {
        let weight = channels == 2 || channels == 4 ? Int(pixels[place + channels - 1]) : 255
        let isGrey = channels < 3
        red += weight * Int(pixels[place])
        green += weight * Int(pixels[isGrey ? place : place + 1])
        blue += weight * Int(pixels[isGrey ? place : place + 2])
        alpha += weight
        count += 1
    }

    /// Fully transparent pixels become transparent black.
    func write(to bytes: inout [UInt8]) {
        let weight = max(1, alpha)
        for sum in [red, green, blue] { bytes.append(UInt8((sum + weight / 2) / weight)) }
        bytes.append(UInt8((alpha + count / 2) / count))
    }
}
