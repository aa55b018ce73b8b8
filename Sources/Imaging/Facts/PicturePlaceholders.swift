import ImageFiles

extension Placeholders {
    init(of miniature: Miniature) {
        let square = miniature.resampled(width: PerceptualHash.side, height: PerceptualHash.side).onWhite
        self.init(
            dominantColour: DominantColour(of: miniature)?.hex,
            blurHash: BlurHash(of: square, columns: 4, rows: 3).text, thumbHash: ThumbHash(of: miniature).base64,
            perceptualHash: PerceptualHash(of: square)?.signed)
    }
}

extension Picture {
    /// - Parameter width: of the source; so is `height`. The decoded picture may have another shape, if two variants
    ///   need different ones.
    func placeholders(width: Int, height: Int) throws(VipsFailure) -> Placeholders {
        let from = storedSize
        let side = Double(Miniature.side)
        let scale = min(
            side / Double(max(width, height)), Double(from.width) / Double(width),
            Double(from.height) / Double(height), 1)
        let size = PixelSize(
            width: max(1, Int((Double(width) * scale).rounded())),
            height: max(1, Int((Double(height) * scale).rounded())),
        )
        let channels = bands
        return Placeholders(
            of: try withPixels {
                Miniature(sampling: $0, of: from, channels: channels, width: size.width, height: size.height)
            })
    }
}

/// The most common colour of a picture.
///
/// Like sharp's `stats().dominant`: it counts the pixels in coarse cells of the colour cube, and the fullest cell wins.
/// Here there are 8×8×8 cells of 32 steps a side, a pixel counts by its alpha, and the result is the mean of the cell
/// and not its middle, so that a picture of one colour has exactly that colour.
/// See <https://sharp.pixelplumbing.com/api-input#stats>.
struct DominantColour: Equatable {
    let red: Int
    let green: Int
    let blue: Int

    /// Nil if every pixel is transparent.
    init?(of picture: Miniature) {
        var cells = [Cell](repeating: Cell(), count: 512)
        let bytes = picture.bytes
        for pixel in stride(from: 0, to: bytes.count, by: 4) {
            let (red, green, blue) = (Int(bytes[pixel]), Int(bytes[pixel + 1]), Int(bytes[pixel + 2]))
            cells[(red >> 5) << 6 | (green >> 5) << 3 | blue >> 5].add(red, green, blue, weight: Int(bytes[pixel + 3]))
        }
        // Of two equally full cells the first, so that the result is always the same.
        guard let fullest = cells.max(by: { $0.weight < $1.weight }), fullest.weight > 0 else { return nil }
        let half = fullest.weight / 2
        red = (fullest.red + half) / fullest.weight
        green = (fullest.green + half) / fullest.weight
        blue = (fullest.blue + half) / fullest.weight
    }

    /// `#rrggbb`.
    var hex: String {
        let digits = String(red << 16 | green << 8 | blue, radix: 16)
        return "#" + String(repeating: "0", count: 6 - digits.count) + digits
    }

    private struct Cell {
        private(set) var red = 0, green = 0, blue = 0, weight = 0

        mutating func add(_ red: Int, _ green: Int, _ blue: Int, weight: Int) {
            self.red += red * weight
            self.green += green * weight
            self.blue += blue * weight
            self.weight += weight
        }
    }
}
