internal import Core

/// A palette for what a frame draws, and its pixels as indices into that.
struct GIFIndexing {
    let palette: GIFPalette
    /// The palette has the file's own colours.
    let isCommon: Bool
    /// What 256 colours of its own would lose of the frame, as ``NearestColours`` measures it; 0 where nothing is lost.
    let loss: Double
    private let delta: FrameDelta
    private let isExact: Bool

    /// - Parameters:
    ///   - common: the file's palette, taken where all colours of the frame are in it, or where those of the frame's
    ///     own would not be so much nearer that they are worth 768 bytes.
    ///   - maxColours: how many colours there may be, 2 to 256, one for transparency among them, but for two: one colour is no
    ///     picture.
    ///   - isLast: no frame comes after it.
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
            // One is left for transparency even where this frame has none: the next may be drawn with the same.
            let room = max(2, isLast ? maxColours - spare : maxColours - 1)
            var colours = WuQuantiser(delta.pixels.lend { ColourMoments(of: $0) }).colours(atMost: room)
            // Only for a still: in an animation the difference can't be seen.
            if isLast, common == nil { colours = delta.pixels.lend { Self.settled(colours, $0) } }
            let own = GIFPalette(ColourTable(colours))
            let loss = Self.loss(delta, own)
            let shared = common.flatMap { palette in
                // A file that begins with nothing to see has a palette of no colours.
                let isUsable = palette.transparent != nil && !palette.table.colours.isEmpty
                return isUsable && Self.loss(delta, palette) <= loss * Self.worthwhile ? palette : nil
            }
            palette = shared ?? own
            isCommon = shared != nil
            self.loss = loss
            isExact = false
        }
    }

    /// Measured on films, pans and drawings: from there on files grow faster than they get better.
    private static let worthwhile = 1.25

    /// Colours moved to the middle of the pixels that they are nearest to, a few times over (Lloyd's algorithm).
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

    /// Lends the rows from top to bottom, and brings `shown` to what is seen after them; each is gone when the next comes.
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
