internal import Core
import ImageFiles

/// A palette for the drawn part of a frame, and its pixels as indices.
struct GIFIndexing {
    let palette: GIFPalette
    /// Whether the palette has the file's own colours.
    let isCommon: Bool
    /// The loss of the frame with a palette of its own, as ``NearestColours`` measures it; 0 if that palette has all
    /// colours of the frame.
    let loss: Double
    private let delta: FrameDelta
    private let isExact: Bool

    /// - Parameters:
    ///   - common: the file's palette. It is used if it has all colours of the frame, or if a palette of the frame's
    ///     own would not be so much better that it is worth 768 bytes.
    ///   - maxColours: maximum colours, 2 to 256, including one for transparency, except with 2: one colour is no
    ///     picture.
    ///   - isLast: whether no frame follows.
    init(_ delta: FrameDelta, common: GIFPalette?, maxColours: Int = ColourTable.maxCount, isLast: Bool) {
        self.delta = delta
        let spare = delta.isOpaque ? 0 : 1
        if let colours = delta.pixels.lend({ ColourTable(of: $0) }), colours.colours.count <= max(2, maxColours - spare)
        {
            let shared = common?.serving(colours, isOpaque: delta.isOpaque)
            palette = shared ?? GIFPalette(colours)
            isCommon = shared != nil
            isExact = true
            loss = 0
        } else {
            // One index is kept for transparency even if this frame has none, since the next frame may use the same
            // palette.
            let room = max(2, isLast ? maxColours - spare : maxColours - 1)
            var colours = WuQuantiser(delta.pixels.lend { ColourMoments(of: $0) }).colours(atMost: room)
            // Only for a still: in an animation the difference is not visible.
            if isLast, common == nil { colours = delta.pixels.lend { Self.settled(colours, $0) } }
            let own = GIFPalette(ColourTable(colours))
            let loss = Self.loss(delta, own)
            let shared = common.flatMap { palette in
                // The palette of a file that begins with a transparent frame has no colours.
                let isUsable = palette.transparent != nil && !palette.table.colours.isEmpty
                return isUsable && Self.loss(delta, palette) <= loss * Self.worthwhile ? palette : nil
            }
            palette = shared ?? own
            isCommon = shared != nil
            self.loss = loss
            isExact = false
        }
    }

    /// Measured on films, pans and drawings: above this, files grow faster than they improve.
    private static let worthwhile = 1.25

    /// Moves colours repeatedly to the mean of the pixels nearest to them (Lloyd's algorithm).
    private static func settled(
        _ colours: [Pixel], _ pixels: UnsafeMutableBufferPointer<Pixel>,
    ) -> [Pixel] {
        var colours = colours
        for _ in 0..<4 where !colours.isEmpty {
            let nearest = NearestColours(colours)
            var sums = [ColourMoments.Sum](repeating: ColourMoments.Sum(), count: colours.count)
            for pixel in pixels where pixel != Pixel() {
                let (red, green, blue) = (pixel.red, pixel.green, pixel.blue)
                sums[nearest.index(red, green, blue)] += ColourMoments.Sum(
                    count: 1, red: red, green: green, blue: blue)
            }
            colours = zip(colours, sums).map { $1.mean ?? $0 }
        }
        return colours
    }

    private static func loss(_ delta: FrameDelta, _ palette: GIFPalette) -> Double {
        delta.pixels.lend { palette.nearest.meanDistance(of: $0, step: max(1, $0.count / 16_384)) }
    }

    /// Lends the rows from top to bottom, each until the next, and updates `shown` to the picture after them.
    func rows(
        over shown: PixelBuffer, _ body: (UnsafeMutableBufferPointer<UInt8>) throws(Failure) -> Void,
    ) throws(Failure) {
        let width = delta.rectangle.width
        let row = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: width)
        defer { row.deallocate() }
        let transparent = UInt8(palette.transparent ?? 0)
        var ditherer = isExact ? nil : Ditherer(palette.nearest, width: width)
        try delta.pixels.lend { (pixels) throws(Failure) in
            for y in 0..<delta.rectangle.height {
                let source = pixels[(y * width)..<((y + 1) * width)]
                if ditherer == nil {
                    look(source, up: row, transparent)
                } else {
                    ditherer?.dither(source, into: row, transparent: transparent)
                }
                show(row, y, on: shown)
                try body(row)
            }
        }
    }

    private func show(_ row: UnsafeMutableBufferPointer<UInt8>, _ y: Int, on shown: PixelBuffer) {
        let start = (delta.rectangle.top + y) * shown.size.width + delta.rectangle.left
        let nothing = delta.isOpaque ? nil : palette.transparent
        shown.lend { shown in
            palette.table.colours.withUnsafeBufferPointer { colours in
                for x in row.indices where Int(row[x]) != nothing { shown[start + x] = colours[Int(row[x])] }
            }
        }
    }

    private func look(
        _ source: Slice<UnsafeMutableBufferPointer<Pixel>>, up row: UnsafeMutableBufferPointer<UInt8>,
        _ transparent: UInt8,
    ) {
        var last = (pixel: Pixel(), index: transparent)
        for (x, pixel) in source.enumerated() {
            if pixel != last.pixel {
                last = (pixel, palette.table.index(of: pixel).map(UInt8.init) ?? transparent)
            }
            row[x] = last.index
        }
    }
}
