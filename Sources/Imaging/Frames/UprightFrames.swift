internal import CVips
internal import Core
import ImageFiles

/// Turns and mirrors frames by EXIF's orientation, before anything else is done to them.
final class UprightFrames: FrameSource {
    let canvas: PixelSize
    let loopCount: Int
    let frameCount: Int
    private let source: any FrameSource
    private let shown: PixelBuffer
    /// 2 to 8.
    private let orientation: Int

    /// - Parameter orientation: 2 to 8.
    init(_ source: any FrameSource, orientation: Int) throws(Failure) {
        self.source = source
        self.orientation = orientation
        canvas = orientation >= 5 ? source.canvas.transposed : source.canvas
        loopCount = source.loopCount
        frameCount = source.frameCount
        shown = try PixelBuffer(canvas)
    }

    func next() throws(Failure) -> AnimationFrame? {
        guard let frame = try source.next() else { return nil }
        let (width, height) = (source.canvas.width, source.canvas.height)
        frame.pixels.lend { from in
            shown.lend { to in
                var place = 0
                for y in 0..<height {
                    for x in 0..<width {
                        let (column, row) = seen(x, y, width, height)
                        to[row * canvas.width + column] = from[place]
                        place += 1
                    }
                }
            }
        }
        return AnimationFrame(shown, lasting: frame.duration)
    }

    /// The place of a stored pixel in the upright picture. TIFF 6.0, section 8, "Orientation".
    @inline(__always)
    private func seen(_ x: Int, _ y: Int, _ width: Int, _ height: Int) -> (column: Int, row: Int) {
        switch orientation {
        case 2: (width - 1 - x, y)
        case 3: (width - 1 - x, height - 1 - y)
        case 4: (x, height - 1 - y)
        case 5: (y, x)
        case 6: (height - 1 - y, x)
        case 7: (height - 1 - y, width - 1 - x)
        default: (y, width - 1 - x)
        }
    }
}

/// Converts frames to sRGB by their file's profile, like stills.
///
/// A profile that cannot be used changes nothing, since browsers show the animation anyway.
final class FrameColours {
    /// Owns the profile's bytes; nil if they cannot be used.
    private var source: Picture?

    /// Nil if there is nothing to convert.
    ///
    /// - Parameter source: may have a profile.
    init?(_ source: Picture) {
        let needsIt = source.withColourProfile { profile in
            let profile = ColourProfile(profile)
            return profile.isOfRGB && !profile.isSRGB
        }
        guard needsIt == true else { return nil }
        self.source = source
    }

    func inSRGB(_ frame: PixelBuffer) throws(Failure) -> PixelBuffer {
        guard let source else { return frame }
        let picture = try frame.picture()
        let converted: Picture
        do throws(VipsFailure) {
            // Lent, not copied for every frame.
            _ = source.withColourProfile { profile in
                picture.lend {
                    vips_image_set_blob(
                        $0, VIPS_META_ICC_NAME, nil, UnsafeMutableRawPointer(mutating: profile.baseAddress),
                        profile.count)
                }
            }
            converted = try picture.then { pw_vips_icc_to_srgb($0, &$1) }.inMemory()
        } catch {
            self.source = nil
            return frame
        }
        return try converted.pixelBuffer()
    }
}
