import ImageFiles

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Decides when a run of frames must end.
struct WebPPace {
    private let settings: WebPFrameSettings
    private let canvas: PixelSize
    /// The pixels that the encoder holds at present, counted as an upper bound.
    private var held = 0
    /// Frames since the encoder began its count for key frames; −1 before the first.
    private var count = -1

    init(_ settings: WebPFrameSettings, canvas: PixelSize) {
        self.settings = settings
        self.canvas = canvas
    }

    /// - Parameter changed: the pixels of the next frame to encode; for a key frame, all of them.
    func isFull(before changed: Int) -> Bool {
        let next = held + max(changed, isAtKeyFrame ? canvas.pixels : 0)
        // The first frame that may become a key frame comes after a cycle's shortest length.
        return next > settings.pixelsInMemory && isAtKeyFrame || next > 2 * settings.pixelsInMemory
    }

    private var isAtKeyFrame: Bool { count == settings.keyFrames.lowerBound }

    mutating func take(_ changed: Int) {
        // A frame without changes only extends the duration of the one before it.
        guard changed > 0 else { return }
        held += isAtKeyFrame ? max(changed, canvas.pixels) : changed
        count += 1
        if count >= settings.keyFrames.upperBound { count = 0 }
    }
}

extension PixelBuffer {
    /// The number of pixels in the rows from the first to the last that differ.
    func changed(since before: PixelBuffer) -> Int {
        let width = size.width
        return lend { pixels in
            before.lend { before in
                guard let pixels = pixels.baseAddress, let before = before.baseAddress else { return 0 }
                func differs(_ row: Int) -> Bool {
                    memcmp(pixels + row * width, before + row * width, width * MemoryLayout<Pixel>.stride) != 0
                }
                guard let first = (0..<size.height).first(where: differs),
                    let last = (0..<size.height).last(where: differs)
                else { return 0 }
                return (last - first + 1) * width
            }
        }
    }

    /// Whether its first and last rows and columns have visible pixels.
    var fillsItsEdges: Bool {
        let (right, bottom) = (size.width - 1, size.height - 1)
        return lend { pixels in
            func isSeen(_ x: Int, _ y: Int) -> Bool { pixels[y * size.width + x].alpha > 0 }
            return (0...right).contains { isSeen($0, 0) } && (0...right).contains { isSeen($0, bottom) }
                && (0...bottom).contains { isSeen(0, $0) } && (0...bottom).contains { isSeen(right, $0) }
        }
    }
}
