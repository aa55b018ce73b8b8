import ImageFiles

/// Colours as on an old photograph. Variants ask for it as `delegate:sepia`, or `delegate:sepia:0.5` for half of it.
struct Sepia: ImageTransform {
    let name = "sepia"
    let version = "1"

    func transform(_ image: RGBAImage, argument: String) throws -> RGBAImage {
        guard let share = argument.isEmpty ? 1 : Double(argument), (0...1).contains(share) else {
            throw SepiaError(description: "the share must be from 0 to 1, not '\(argument)'")
        }
        var image = image
        for start in stride(from: 0, to: image.pixels.count, by: 4) {
            let colour = image.pixels[start..<start + 3].map(Double.init)
            for channel in 0..<3 {
                let old = zip(Self.weights[channel], colour).reduce(0) { $0 + $1.0 * $1.1 }
                let mixed = min(255, old) * share + colour[channel] * (1 - share)
                image.pixels[start + channel] = UInt8(mixed.rounded())
            }
        }
        return image
    }

    /// Of red, green and blue, in each of them. Source: W3C, Filter Effects Module Level 1, `sepia()`.
    private static let weights = [[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]]
}

struct SepiaError: Error, CustomStringConvertible {
    let description: String
}
