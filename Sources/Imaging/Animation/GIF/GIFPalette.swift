/// The colours of a GIF's frame, and the index that draws nothing.
struct GIFPalette {
    let table: ColourTable
    /// The colours once more, where they are too few for exact ones.
    let nearest: NearestColours
    /// Nil where every pixel is drawn.
    let transparent: Int?

    /// The colours of a table, with an index for transparency after them where there is room.
    init(_ table: ColourTable) {
        self.table = table
        nearest = NearestColours(table.colours)
        transparent = table.colours.count < ColourTable.most ? table.colours.count : nil
    }

    /// A table for a frame that uses only some of its colours, so that any of the others may stand for transparency.
    private init(_ table: ColourTable, _ nearest: NearestColours, transparent: Int) {
        self.table = table
        self.nearest = nearest
        self.transparent = transparent
    }

    /// What this palette has to be for a frame of these colours, or nil where it lacks one of them.
    func serving(_ colours: ColourTable, isOpaque: Bool) -> GIFPalette? {
        guard table.contains(allOf: colours) else { return nil }
        if isOpaque || transparent != nil { return self }
        let unused = table.colours.indices.first { colours.index(of: table.colours[$0]) == nil }
        return unused.map { GIFPalette(table, nearest, transparent: $0) }
    }

    /// Colours and the transparent index, filled up to a power of two: what a GIF can hold.
    var entries: [Pixel] {
        let needed = max(2, table.colours.count, (transparent ?? 0) + 1)
        var size = 2
        while size < needed { size *= 2 }
        return table.colours + [Pixel](repeating: Pixel(), count: size - table.colours.count)
    }
}
