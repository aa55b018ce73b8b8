internal import CVips

/// Brings frames to an output's size.
struct FrameScaler {
    /// Scaled to exactly `size`; the same buffer where it has that size already.
    ///
    /// Colours are weighed by their alpha; what is opaque stays opaque.
    func scaled(_ frame: PixelBuffer, to size: PixelSize) throws(ImagingError) -> PixelBuffer {
        guard frame.size != size else { return frame }
        let result = try PixelBuffer(size)
        let isOpaque = frame.isOpaque
        do throws(VipsFailure) {
            let picture = try Picture(of: frame)
            let scaled = try isOpaque ? picture.resizedUnweighed(to: size) : picture.resized(to: size)
            try scaled.withPixels { pixels in
                if let start = pixels.bindMemory(to: UInt8.self).baseAddress { result.copy(from: start) }
            }
        } catch {
            throw error.error(.transform, "A frame could not be scaled")
        }
        // Rounding may take a little of it, and an encoder would write an alpha for that.
        if isOpaque {
            result.lend { pixels in for index in pixels.indices { pixels[index] = pixels[index].opaque } }
        }
        return result
    }

    /// Scaled, then cropped or padded with nothing around the centre.
    func placed(_ frame: PixelBuffer, _ placement: Placement) throws(ImagingError) -> PixelBuffer {
        let scaled = try scaled(frame, to: placement.scaled)
        guard placement.output != placement.scaled else { return scaled }
        let result = try PixelBuffer(placement.output)
        let left = (placement.output.width - placement.scaled.width) / 2
        let top = (placement.output.height - placement.scaled.height) / 2
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

extension Picture {
    /// The buffer's pixels, not copied: the buffer must outlive the picture, and what is made from it.
    fileprivate convenience init(of buffer: PixelBuffer) throws(VipsFailure) {
        try self.init { result in
            result = buffer.lend { pixels in
                vips_image_new_from_memory(
                    pixels.baseAddress, pixels.count * 4, CInt(buffer.size.width), CInt(buffer.size.height), 4,
                    VIPS_FORMAT_UCHAR)
            }
            // libvips takes bare memory for bands of no meaning.
            result?.pointee.Type = VIPS_INTERPRETATION_sRGB
            return result == nil ? -1 : 0
        }
    }

    /// As ``resized(to:gap:)`` where the alpha is the same everywhere, which takes about half of the time.
    fileprivate func resizedUnweighed(to size: PixelSize) throws(VipsFailure) -> Picture {
        let horizontal = Double(size.width) / Double(storedSize.width)
        let vertical = Double(size.height) / Double(storedSize.height)
        return try then { pw_vips_resize($0, &$1, horizontal, vertical, 2) }
    }

    /// A copy of the pixels, in web colours, with an alpha.
    func pixelBuffer() throws(ImagingError) -> PixelBuffer {
        let buffer = try PixelBuffer(storedSize)
        do throws(VipsFailure) {
            let coloured = bands < 3 ? try then { pw_vips_colourspace($0, &$1, VIPS_INTERPRETATION_sRGB) } : self
            let whole = coloured.hasAlpha ? coloured : try coloured.then { pw_vips_add_alpha($0, &$1) }
            try whole.withPixels { pixels in
                if let start = pixels.bindMemory(to: UInt8.self).baseAddress { buffer.copy(from: start) }
            }
        } catch {
            throw error.error(.encode, "The pixels could not be brought into an encoder's form")
        }
        return buffer
    }
}
