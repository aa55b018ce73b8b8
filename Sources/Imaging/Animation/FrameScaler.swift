internal import CVips
internal import Core
import ImageFiles
import Variants

/// Scales frames to an output's size.
struct FrameScaler {
    /// Scaled to exactly `size`; the same buffer if it has that size already.
    ///
    /// Colours are weighted by their alpha; opaque frames stay opaque.
    func scaled(_ frame: PixelBuffer, to size: PixelSize) throws(Failure) -> PixelBuffer {
        let from = frame.size
        guard from != size else { return frame }
        guard size.width <= from.width, size.height <= from.height else {
            return try enlarged(frame, to: size)
        }
        let result = try PixelBuffer(size)
        var resampler = Resampler(from: from, to: size, layout: PixelLayout(channels: 4, hasAlpha: !frame.isOpaque))
        frame.lend { source in
            result.lend { target in
                guard let rows = UnsafeRawPointer(source.baseAddress), let out = target.baseAddress else { return }
                var line = 0
                for row in 0..<from.height {
                    resampler.take((rows + row * from.width * 4).assumingMemoryBound(to: UInt8.self))
                    while resampler.hasLine {
                        let start = UnsafeMutableRawPointer(out + line * size.width)
                        resampler.give(start.assumingMemoryBound(to: UInt8.self))
                        line += 1
                    }
                }
            }
        }
        return result
    }

    private func enlarged(_ frame: PixelBuffer, to size: PixelSize) throws(Failure) -> PixelBuffer {
        let picture = try frame.picture()
        let scaled: Picture
        do throws(VipsFailure) {
            // Opaque frames stay opaque, and take half the time without their alpha.
            let source = frame.isOpaque ? try picture.then { pw_vips_first_bands($0, &$1, 3) } : picture
            scaled = try source.resizedByLibvips(to: size)
        } catch {
            throw error.error(.transform, "A frame could not be scaled")
        }
        return try scaled.pixelBuffer()
    }

    /// Scaled, then cropped or padded with transparency.
    ///
    /// - Parameter position: a fixed one: see ``Position/fixed(on:_:)``.
    func placed(
        _ frame: PixelBuffer, _ placement: Placement, at position: Position,
    ) throws(Failure) -> PixelBuffer {
        let scaled = try scaled(frame, to: placement.scaled)
        guard placement.output != placement.scaled else { return scaled }
        let result = try PixelBuffer(placement.output)
        let (left, top) = position.place(of: placement.scaled, in: placement.output)
        let part = PixelRectangle(left: left, top: top, width: scaled.size.width, height: scaled.size.height)
            .clipped(to: placement.output)
        scaled.lend { source in
            result.lend { target in
                for y in part.rows {
                    let from = (y - top) * scaled.size.width + part.left - left
                    let to = y * result.size.width + part.left
                    for x in 0..<part.width { target[to + x] = source[from + x] }
                }
            }
        }
        return result
    }
}
