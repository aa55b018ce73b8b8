internal import CVips
import ImageFiles
import Variants

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

// Effects that change each channel by its own value alone.

extension Picture {
    /// Transparent pixels stay so, and half-transparent ones get the colour that they would have as opaque ones.
    func tinted(_ colour: Colour, blend: BlendMode) throws(VipsFailure) -> Picture {
        let coloured = bands < 3 ? try then { pw_vips_colourspace($0, &$1, VIPS_INTERPRETATION_sRGB) } : self
        // With one colour for the whole picture, each channel's new value depends only on its old one.
        let entries = blend.tints(colour)
        return try coloured.onColours { colours throws(VipsFailure) in try colours.mapped(by: entries, channels: 3) }
    }

    /// More than 1 lightens the middle, less darkens it.
    func withGamma(_ exponent: Double) throws(VipsFailure) -> Picture {
        let entries = (0...255).map { UInt8((255 * pow(Double($0) / 255, 1 / exponent)).rounded()) }
        return try onColours { colours throws(VipsFailure) in try colours.mapped(by: entries, channels: 1) }
    }

    /// - Parameter entries: the new value for each old one, for one channel or for each.
    private func mapped(by entries: [UInt8], channels: Int) throws(VipsFailure) -> Picture {
        let table = try Picture { result in
            result = entries.withUnsafeBytes {
                vips_image_new_from_memory_copy($0.baseAddress, $0.count, 256, 1, CInt(channels), VIPS_FORMAT_UCHAR)
            }
            return result == nil ? -1 : 0
        }
        return try then { picture, result in table.lend { pw_vips_maplut(picture, &result, $0) } }
    }
}

extension BlendMode {
    /// Red, green and blue for each value of a channel.
    fileprivate func tints(_ colour: Colour) -> [UInt8] {
        let opacity = Double(colour.alpha) / 255
        return (0...255).flatMap { value in
            [colour.red, colour.green, colour.blue].map { channel in
                let below = Double(value) / 255
                let mixed = mixed(below, Double(channel) / 255)
                return UInt8((255 * (below + opacity * (mixed - below))).rounded())
            }
        }
    }
}
