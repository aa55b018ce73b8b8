internal import Core

/// The sizes in a HEIC or AVIF. libheif checks sizes only when it decodes, and allocates by the first that it meets.
///
/// ISO/IEC 14496-12 for the boxes, ISO/IEC 23008-12 for `ispe` (6.5.3) and the grid (6.6.2.3).
struct HEIFBoxes {
    /// A picture made of equal tiles.
    struct Grid: Equatable {
        let rows: Int
        let columns: Int
        let size: PixelSize
    }

    /// The sizes of every picture in the file, including tiles.
    private(set) var extents: [PixelSize] = []
    /// Every picture that consists of tiles.
    private(set) var grids: [Grid] = []
    /// The most bits of a channel anywhere in the file.
    private(set) var depth = 8

    init(_ reader: ByteReader) {
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
    func objection(_ limits: ImageLimits) -> Failure? {
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

    /// Whether there is a tile that is large enough. It does not look up which of the extents is the tiles'.
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
    var largest: PixelSize? {
        (extents + grids.map(\.size)).max {
            $0.width.multipliedFullWidth(by: $0.height) < $1.width.multipliedFullWidth(by: $1.height)
        }
    }
}

/// The first box of an ISO base media file, with its brands.
struct FileTypeBox {
    let major: String
    let compatible: [String]
    /// Whether the whole box could be read.
    let isComplete: Bool

    /// Nil if even the major brand is missing.
    init?(_ reader: ByteReader) {
        guard reader.has("ftyp", at: 4), let size = reader.big(4, at: 0),
            let major = Self.brand(at: 8, reader)
        else { return nil }
        // Images have far fewer brands. Reading stops here instead of waiting for the rest of the box.
        let end = min(max(size, 16), 16 + 4 * 64)
        self.major = major
        compatible = stride(from: 16, to: end - 3, by: 4).compactMap { Self.brand(at: $0, reader) }
        isComplete = reader.count >= end
    }

    /// `heic` or `avif`: HEIC is assumed until a neutral brand is followed by another one.
    var format: String? {
        if let format = Self.format(of: major) { return format }
        guard Self.neutral.contains(major) else { return nil }
        return compatible.lazy.compactMap(Self.format).first ?? "heic"
    }

    /// Whether more bytes could still change ``format``.
    var isDecided: Bool {
        isComplete || !Self.neutral.contains(major) || compatible.contains { Self.format(of: $0) != nil }
    }

    private static let neutral: Set<String> = ["mif1", "msf1"]

    private static func format(of brand: String) -> String? {
        switch brand {
        case "heic", "heix", "hevc", "hevx", "heim", "heis": "heic"
        case "avif", "avis": "avif"
        default: nil
        }
    }

    private static func brand(at offset: Int, _ reader: ByteReader) -> String? {
        guard reader.contains(offset, length: 4) else { return nil }
        return String(decoding: reader.bytes[offset..<(offset + 4)], as: UTF8.self)
    }
}

/// The references between the items of a HEIC or AVIF.
///
/// ISO/IEC 14496-12, 8.11.4 (`pitm`) and 8.11.12 (`iref`); ISO/IEC 23008-12, 6.9 for `prem` and `auxl`.
struct HEIFReferences {
    /// Whether the colours are premultiplied with the alpha: libheif reports this, and does not convert them.
    private(set) var isPremultiplied = false

    private let reader: ByteReader

    init(_ reader: ByteReader) {
        self.reader = reader
        guard let meta = Boxes.box("meta", in: 0..<reader.count, reader) else { return }
        // A full box begins with version and flags.
        let parts = min(meta.lowerBound + 4, meta.upperBound)..<meta.upperBound
        guard let primary = primaryItem(in: parts), let list = Boxes.box("iref", in: parts, reader),
            let version = reader.byte(at: list.lowerBound), list.count >= 4
        else { return }
        let length = version == 0 ? 2 : 4
        var premultiplied: Set<Int> = []
        var helpers: Set<Int> = []
        Boxes.each(in: (list.lowerBound + 4)..<list.upperBound, reader) { offset, content in
            guard let (from, to) = items(in: content, each: length) else { return true }
            if reader.has("prem", at: offset), from == primary { premultiplied.formUnion(to) }
            if reader.has("auxl", at: offset), to.contains(primary) { helpers.insert(from) }
            return true
        }
        isPremultiplied = !premultiplied.isDisjoint(with: helpers)
    }

    private func primaryItem(in parts: Range<Int>) -> Int? {
        guard let box = Boxes.box("pitm", in: parts, reader), let version = reader.byte(at: box.lowerBound) else {
            return nil
        }
        return reader.big(version == 0 ? 2 : 4, at: box.lowerBound + 4)
    }

    /// One item, the number of its references, and the items that it refers to.
    private func items(in content: Range<Int>, each length: Int) -> (from: Int, to: [Int])? {
        let start = content.lowerBound
        guard let from = reader.big(length, at: start), let count = reader.big(2, at: start + length),
            length + 2 + count * length <= content.count
        else { return nil }
        return (from, (0..<count).compactMap { reader.big(length, at: start + length + 2 + $0 * length) })
    }
}
