/// What a HEIC or AVIF says of its sizes: libheif asks only when it decodes, and allocates by whichever it meets first.
///
/// ISO/IEC 14496-12 for the boxes, ISO/IEC 23008-12 for `ispe` (6.5.3) and the grid (6.6.2.3).
struct HEIFBoxes {
    /// A picture made of equal tiles.
    struct Grid: Equatable {
        let rows: Int
        let columns: Int
        let size: PixelSize
    }

    /// Of every picture in the file, tiles among them.
    private(set) var extents: [PixelSize] = []
    /// Every picture that is made of tiles.
    private(set) var grids: [Grid] = []
    /// The most bits a channel has anywhere in the file.
    private(set) var depth = 8

    init(_ reader: ByteReader) {
        guard let meta = Self.box("meta", in: 0..<reader.count, reader) else { return }
        // A full box: version and flags come first.
        let parts = min(meta.lowerBound + 4, meta.upperBound)..<meta.upperBound
        grids = HEIFItems(parts, reader).grids.compactMap { Self.grid($0, reader) }
        guard let properties = Self.box("iprp", in: parts, reader),
            let list = Self.box("ipco", in: properties, reader)
        else { return }
        Self.eachBox(in: list, reader) { offset, content in
            if reader.has("pixi", at: offset), let channels = reader.byte(at: content.lowerBound + 4) {
                let bits = (0..<Int(channels)).compactMap { reader.byte(at: content.lowerBound + 5 + $0) }
                depth = max(depth, bits.map(Int.init).max() ?? 8)
            }
            guard reader.has("ispe", at: offset), let width = reader.big(4, at: content.lowerBound + 4),
                let height = reader.big(4, at: content.lowerBound + 8)
            else { return true }
            extents.append(PixelSize(width: width, height: height))
            return true
        }
    }

    /// What is wrong with these sizes, if anything.
    func objection(_ limits: ImageLimits) -> ImagingError? {
        for size in extents + grids.map(\.size) {
            if let error = limits.objection(width: size.width, height: size.height), error.code == .tooManyPixels {
                return error
            }
        }
        guard let grid = grids.first(where: { !isCovered($0) }) else { return nil }
        return ImagingError(
            code: .badImage,
            message: "\(grid.rows) by \(grid.columns) tiles don't cover \(grid.size.width)×\(grid.size.height) pixels.")
    }

    /// Whether there is a tile large enough. Which of the extents is the tiles' is not looked up.
    private func isCovered(_ grid: Grid) -> Bool {
        let others = extents.filter { $0 != grid.size }
        return others.isEmpty
            || others.contains {
                $0.width * grid.columns >= grid.size.width && $0.height * grid.rows >= grid.size.height
            }
    }

    /// Version, flags of which one says that sizes have four bytes, rows and columns less one, width and height.
    private static func grid(_ data: Range<Int>, _ reader: ByteReader) -> Grid? {
        let start = data.lowerBound
        guard reader.byte(at: start) == 0, let flags = reader.byte(at: start + 1),
            data.count >= (flags & 1 == 1 ? 12 : 8),
            let rows = reader.byte(at: start + 2), let columns = reader.byte(at: start + 3)
        else { return nil }
        let length = flags & 1 == 1 ? 4 : 2
        guard let width = reader.big(length, at: start + 4), let height = reader.big(length, at: start + 4 + length)
        else { return nil }
        return Grid(rows: Int(rows) + 1, columns: Int(columns) + 1, size: PixelSize(width: width, height: height))
    }

    /// The largest picture, as the boxes say.
    var largest: PixelSize? {
        (extents + grids.map(\.size)).max {
            $0.width.multipliedFullWidth(by: $0.height) < $1.width.multipliedFullWidth(by: $1.height)
        }
    }

    static func box(_ name: StaticString, in range: Range<Int>, _ reader: ByteReader) -> Range<Int>? {
        var found: Range<Int>?
        eachBox(in: range, reader) { offset, content in
            if reader.has(name, at: offset) { found = content }
            return found == nil
        }
        return found
    }

    /// - Parameter body: gets where the name stands and what is in the box, and returns whether to go on.
    static func eachBox(in range: Range<Int>, _ reader: ByteReader, _ body: (Int, Range<Int>) -> Bool) {
        var offset = range.lowerBound
        while offset + 8 <= range.upperBound, var size = reader.big(4, at: offset) {
            var header = 8
            if size == 1 {
                guard let large = reader.big(8, at: offset + 8) else { return }
                (size, header) = (large, 16)
            }
            if size == 0 { size = range.upperBound - offset }
            guard size >= header, size <= range.upperBound - offset else { return }
            guard body(offset + 4, (offset + header)..<(offset + size)) else { return }
            offset += size
        }
    }
}
