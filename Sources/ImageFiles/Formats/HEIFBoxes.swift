package import Core

/// The sizes in a HEIC or AVIF. libheif checks sizes only when it decodes, and allocates by the first that it meets.
///
/// ISO/IEC 14496-12 for the boxes, ISO/IEC 23008-12 for `ispe` (6.5.3) and the grid (6.6.2.3).
package struct HEIFBoxes {
    /// A picture made of equal tiles.
    package struct Grid: Equatable {
        package let rows: Int
        package let columns: Int
        package let size: PixelSize
    }

    /// The sizes of every picture in the file, including tiles.
    private(set) var extents: [PixelSize] = []
    /// Every picture that consists of tiles.
    private(set) var grids: [Grid] = []
    /// The most bits of a channel anywhere in the file.
    private(set) var depth = 8

    package init(_ reader: ByteReader) {
        guard let meta = Boxes.box("meta", in: 0..<reader.count, reader) else { return }
        // A full box begins with version and flags.
        let parts = min(meta.lowerBound + 4, meta.upperBound)..<meta.upperBound
        grids = HEIFItems(parts, reader).grids.compactMap { Self.grid($0, reader) }
        guard let properties = Boxes.box("iprp", in: parts, reader),
            let list = Boxes.box("ipco", in: properties, reader)
        else { return }
        Boxes.each(in: list, reader) { offset, content in
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

    /// The failure if a size exceeds a limit.
    package func objection(_ limits: ImageLimits) -> Failure? {
        for size in extents + grids.map(\.size) {
            if let error = limits.objection(width: size.width, height: size.height),
                error.failureClass == .tooManyPixels
            {
                return error
            }
        }
        guard let grid = grids.first(where: { !isCovered($0) }) else { return nil }
        return Failure(
            .badImage,
            "\(grid.rows) by \(grid.columns) tiles don't cover \(grid.size.width)×\(grid.size.height) pixels.")
    }

    /// Whether some extent is large enough for a tile of this grid; it does not look up which extent is the tiles'.
    private func isCovered(_ grid: Grid) -> Bool {
        let others = extents.filter { $0 != grid.size }
        return others.isEmpty
            || others.contains {
                $0.width * grid.columns >= grid.size.width && $0.height * grid.rows >= grid.size.height
            }
    }

    /// Version, flags (one of which means sizes of four bytes), rows and columns less one, width and height.
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

    /// The size of the largest picture, by the boxes.
    package var largest: PixelSize? {
        (extents + grids.map(\.size)).max {
            $0.width.multipliedFullWidth(by: $0.height) < $1.width.multipliedFullWidth(by: $1.height)
        }
    }
}
