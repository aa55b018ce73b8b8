/// What of a frame has to be drawn over what is shown: a rectangle of opaque pixels, transparent black where what is
/// there stays.
struct GIFInk {
    let rectangle: PixelRectangle
    let pixels: PixelBuffer
    let isOpaque: Bool

    /// - Parameters:
    ///   - frame: of opaque pixels and transparent black ones.
    ///   - shown: before the frame; the same.
    ///   - clearing: the rectangle covers all that is visible, so that the frame can be disposed of.
    ///   - isFirst: the rectangle is the canvas: what the first frame doesn't reach some programs take for black.
    ///   - tolerance: how far what is shown may be from the frame and stay, as ``NearestColours`` measures it.
    init(
        of frame: PixelBuffer, over shown: PixelBuffer, clearing: Bool, isFirst: Bool, tolerance: Int = 0,
    ) throws(ImagingError) {
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

    /// The smallest with all that changes; one pixel where nothing does, as a GIF has no frame without any.
    private static func rectangle(
        _ frame: PixelBuffer, _ shown: PixelBuffer, clearing: Bool, _ tolerance: Int,
    ) -> PixelRectangle {
        let size = frame.size
        var (left, right, top, bottom) = (size.width, -1, -1, -1)
        Self.lend(frame, shown, frame) { frame, shown, _ in
            for y in 0..<size.height {
                let row = (y * size.width)..<((y + 1) * size.width)
                func counts(_ position: Int) -> Bool {
                    frame[position] != Pixel() && (clearing || differs(frame[position], shown[position], tolerance))
                }
                guard let first = row.first(where: counts), let last = row.last(where: counts) else { continue }
                left = min(left, first - row.lowerBound)
                right = max(right, last - row.lowerBound)
                if top < 0 { top = y }
                bottom = y
            }
        }
        guard bottom >= 0 else { return PixelRectangle(left: 0, top: 0, width: 1, height: 1) }
        return PixelRectangle(left: left, top: top, width: right - left + 1, height: bottom - top + 1)
    }

    private typealias Pixels = UnsafeMutableBufferPointer<Pixel>

    private static func lend(
        _ first: PixelBuffer, _ second: PixelBuffer, _ third: PixelBuffer, _ body: (Pixels, Pixels, Pixels) -> Void,
    ) {
        first.lend { first in second.lend { second in third.lend { third in body(first, second, third) } } }
    }
}
