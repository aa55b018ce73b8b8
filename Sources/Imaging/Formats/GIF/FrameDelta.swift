internal import Core
import ImageFiles

/// The part of a frame that must be drawn over the picture that is shown: a rectangle of opaque pixels, with
/// transparent black where the shown pixels stay.
struct FrameDelta {
    let rectangle: PixelRectangle
    let pixels: PixelBuffer
    let isOpaque: Bool

    /// - Parameters:
    ///   - frame: opaque and transparent black pixels only.
    ///   - shown: the picture before the frame; also opaque and transparent black pixels only.
    ///   - clearing: whether the rectangle covers everything visible, so that the frame can be disposed of.
    ///   - isFirst: whether the rectangle is the canvas, since some programs show parts outside the first frame as
    ///     black.
    ///   - tolerance: the distance up to which a shown pixel may stay, as ``NearestColours`` measures it.
    init(
        of frame: PixelBuffer, over shown: PixelBuffer, clearing: Bool, isFirst: Bool, tolerance: Int = 0,
    ) throws(Failure) {
        rectangle =
            isFirst
            ? PixelRectangle(width: frame.size.width, height: frame.size.height)
            : Self.rectangle(frame, shown, clearing: clearing, tolerance)
        pixels = try PixelBuffer(PixelSize(width: rectangle.width, height: rectangle.height))
        isOpaque = Self.draw(frame, over: shown, rectangle, into: pixels, tolerance)
    }

    private static func differs(_ pixel: Pixel, _ shown: Pixel, _ tolerance: Int) -> Bool {
        guard pixel != shown else { return false }
        guard tolerance > 0, shown != Pixel() else { return true }
        return NearestColours.distance(pixel.red, pixel.green, pixel.blue, shown) > tolerance
    }

    /// - Returns: whether every pixel of the rectangle is drawn.
    private static func draw(
        _ frame: PixelBuffer, over shown: PixelBuffer, _ rectangle: PixelRectangle, into ink: PixelBuffer,
        _ tolerance: Int,
    ) -> Bool {
        let width = frame.size.width
        var drawn = 0
        var place = 0
        Self.lend(frame, shown, ink) { frame, shown, ink in
            for y in rectangle.rows {
                for position in (y * width + rectangle.left)..<(y * width + rectangle.left + rectangle.width) {
                    let pixel = frame[position]
                    if pixel != Pixel(), differs(pixel, shown[position], tolerance) {
                        ink[place] = pixel
                        drawn += 1
                    }
                    place += 1
                }
            }
        }
        return drawn == place
    }

    /// The smallest rectangle with all changes; one pixel if there are none, since a GIF's frame cannot be empty.
    private static func rectangle(
        _ frame: PixelBuffer, _ shown: PixelBuffer, clearing: Bool, _ tolerance: Int,
    ) -> PixelRectangle {
        let size = frame.size
        var rectangle = PixelRectangle()
        Self.lend(frame, shown, frame) { frame, shown, _ in
            rectangle = PixelRectangle(
                around: {
                    frame[$0] != Pixel() && (clearing || differs(frame[$0], shown[$0], tolerance))
                }, in: size)
        }
        return rectangle
    }

    private typealias Pixels = UnsafeMutableBufferPointer<Pixel>

    private static func lend(
        _ first: PixelBuffer, _ second: PixelBuffer, _ third: PixelBuffer, _ body: (Pixels, Pixels, Pixels) -> Void,
    ) {
        first.lend { first in second.lend { second in third.lend { third in body(first, second, third) } } }
    }
}

/// The colours of a GIF's frame, and the index for transparency.
struct GIFPalette {
    let table: ColourTable
    /// The nearest colours, if the palette lacks exact ones.
    let nearest: NearestColours
    /// Nil if every pixel is drawn.
    let transparent: Int?

    /// The colours of a table, followed by an index for transparency if there is space.
    init(_ table: ColourTable) {
        self.table = table
        nearest = NearestColours(table.colours)
        transparent = table.colours.count < ColourTable.maxCount ? table.colours.count : nil
    }

    /// A table for a frame that uses only some of its colours, so that an unused one can mean transparency.
    private init(_ table: ColourTable, _ nearest: NearestColours, transparent: Int) {
        self.table = table
        self.nearest = nearest
        self.transparent = transparent
    }

    /// This palette, adapted to a frame of these colours; nil if it lacks one of them.
    func serving(_ colours: ColourTable, isOpaque: Bool) -> GIFPalette? {
        guard table.contains(allOf: colours) else { return nil }
        if isOpaque || transparent != nil { return self }
        let unused = table.colours.indices.first { colours.index(of: table.colours[$0]) == nil }
        return unused.map { GIFPalette(table, nearest, transparent: $0) }
    }

    /// Colours and the transparent index, padded to a power of two as GIF requires.
    var entries: [Pixel] {
        let needed = max(2, table.colours.count, (transparent ?? 0) + 1)
        var size = 2
        while size < needed { size *= 2 }
        return table.colours + [Pixel](repeating: Pixel(), count: size - table.colours.count)
    }
}
