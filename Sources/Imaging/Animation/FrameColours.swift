internal import CVips

/// Brings frames to sRGB by their file's profile, as stills are.
///
/// A profile that can't be used changes nothing: every browser shows the animation all the same.
final class FrameColours {
    /// Owns the profile's bytes; nil once they turned out to be of no use.
    private var source: Picture?

    /// Nil where there is nothing to convert.
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

    func inSRGB(_ frame: PixelBuffer) throws(ImagingError) -> PixelBuffer {
        guard let source else { return frame }
        let picture = try frame.picture()
        let converted: Picture
        do throws(VipsFailure) {
            // Lent, and not copied for every frame.
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
