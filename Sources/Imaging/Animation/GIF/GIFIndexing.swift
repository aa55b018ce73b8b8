/// A palette for what a frame draws, and its pixels as indices into that.
struct GIFIndexing {
    let palette: GIFPalette
    /// The palette has the file's own colours.
    let isCommon: Bool
    private let ink: GIFInk
    private let isExact: Bool

    /// - Parameter common: the file's palette, taken where the frame's colours are all in it.
    init(_ ink: GIFInk, common: GIFPalette?) {
        self.ink = ink
        let spare = ink.isOpaque ? 0 : 1
        if let colours = ink.pixels.lend({ ColourTable(of: $0) }), colours.colours.count + spare <= ColourTable.most {
            let shared = common?.serving(colours, isOpaque: ink.isOpaque)
            palette = shared ?? GIFPalette(colours)
            isCommon = shared != nil
            isExact = true
        } else {
            let colours = WuQuantiser(ink.pixels.lend { ColourMoments(of: $0) })
                .colours(atMost: ColourTable.most - spare)
            palette = GIFPalette(ColourTable(colours))
            isCommon = false
            isExact = false
        }
    }

    /// Lends the rows from top to bottom; each is gone when the next comes.
    func rows(
        _ body: (UnsafeMutableBufferPointer<UInt8>) throws(ImagingError) -> Void,
    ) throws(ImagingError) {
        let width = ink.rectangle.width
        let row = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: width)
        defer { row.deallocate() }
        let transparent = UInt8(palette.transparent ?? 0)
        var ditherer = isExact ? nil : Ditherer(palette.table.colours, width: width)
        try ink.pixels.lend { (pixels) throws(ImagingError) in
            for y in 0..<ink.rectangle.height {
                let source = pixels[(y * width)..<((y + 1) * width)]
                if ditherer == nil {
                    look(source, up: row, transparent)
                } else {
                    ditherer?.dither(source, into: row, transparent: transparent)
                }
                try body(row)
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
