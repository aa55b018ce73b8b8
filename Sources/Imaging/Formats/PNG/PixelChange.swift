internal import Core
import ImageFiles

/// The part of a frame that differs from the one before it.
struct PixelChange {
    let rectangle: PixelRectangle
    private let shown: PixelBuffer
    private let frame: PixelBuffer

    /// - Parameter isFirst: whether the part is the whole frame.
    init(from shown: PixelBuffer, to frame: PixelBuffer, isFirst: Bool) {
        let size = frame.size
        (self.shown, self.frame) = (shown, frame)
        rectangle =
            isFirst
            ? PixelRectangle(width: size.width, height: size.height)
            : shown.lend { shown in
                frame.lend { frame in PixelRectangle(around: { shown[$0] != frame[$0] }, in: size) }
            }
    }

    /// The frame's pixels.
    func pixels() throws(Failure) -> PixelBuffer {
        let part = try PixelBuffer(PixelSize(width: rectangle.width, height: rectangle.height))
        frame.lend { frame in part.lend { part in eachPixel { part[$0] = frame[$1] } } }
        return part
    }

    /// The pixels to draw over the frame before: transparent black where nothing changes.
    ///
    /// - Returns: nil if hardly a pixel stays, or if one becomes transparent, which drawing cannot do.
    func ink() throws(Failure) -> PixelBuffer? {
        let part = try PixelBuffer(PixelSize(width: rectangle.width, height: rectangle.height))
        var (kept, isOpaque) = (0, true)
        shown.lend { shown in
            frame.lend { frame in
                part.lend { part in
                    eachPixel { place, position in
                        let pixel = frame[position]
                        if pixel == shown[position] {
                            kept += 1
                        } else {
                            part[place] = pixel
                            isOpaque = isOpaque && pixel.alpha == 255
                        }
                    }
                }
            }
        }
        return isOpaque && kept >= part.size.pixels / 8 && kept > 0 ? part : nil
    }

    /// - Parameter body: gets a pixel's index in the rectangle and on the canvas.
    private func eachPixel(_ body: (Int, Int) -> Void) {
        var place = 0
        for y in rectangle.rows {
            let start = y * frame.size.width + rectangle.left
            for x in 0..<rectangle.width {
                body(place, start + x)
                place += 1
            }
        }
    }
}
