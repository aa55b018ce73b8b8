internal import CVips
import SystemPackage

extension Picture {
    /// Encodes without metadata, and writes to `descriptor` from where it stands.
    func write(as format: VariantSpec.Output, quality: Int?, to descriptor: FileDescriptor) throws(VipsFailure) {
        let quality = quality ?? format.defaultQuality ?? 0
        if format == .webp { return try writeWebP(quality: quality, to: descriptor) }
        if format == .gif { return try writeGIF(to: descriptor) }
        // libvips works on a duplicate, and closes that.
        guard let target = vips_target_new_to_descriptor(descriptor.rawValue) else { throw VipsFailure.take() }
        defer { g_object_unref(target) }
        let result = lend { image in
            switch format {
            case .jpeg: pw_vips_save_jpeg(image, target, CInt(quality))
            case .png: pw_vips_save_png(image, target)
            case .avif: pw_vips_save_avif(image, target, CInt(quality))
            case .webp, .gif: CInt(-1)
            }
        }
        guard result == 0 else { throw VipsFailure.take() }
    }

    private func writeWebP(quality: Int, to descriptor: FileDescriptor) throws(VipsFailure) {
        let coloured = bands < 3 ? try then { pw_vips_colourspace($0, &$1, VIPS_INTERPRETATION_sRGB) } : self
        let encoder = WebPEncoder(size: coloured.storedSize, hasAlpha: coloured.bands == 4, quality: quality)
        let file = try coloured.withPixels { (pixels) throws(VipsFailure) in try encoder.encode(pixels) }
        do {
            try file.withBytes { bytes in _ = try descriptor.writeAll(bytes) }
        } catch {
            throw VipsFailure(text: "\(error)")
        }
    }

    private func writeGIF(to descriptor: FileDescriptor) throws(VipsFailure) {
        do throws(ImagingError) {
            let sink = try GIFFrameSink(descriptor, size: storedSize, loopCount: 1)
            try sink.add(pixelBuffer(), duration: 0)
            try sink.finish()
        } catch {
            throw VipsFailure(text: error.message)
        }
    }

    /// Lends all pixels, row by row, channels side by side. Of eight bits a channel only.
    func withPixels<Result>(
        _ body: (UnsafeRawBufferPointer) throws(VipsFailure) -> Result,
    ) throws(VipsFailure) -> Result {
        let memory = try inMemory()
        let size = memory.storedSize
        guard memory.bandFormat == VIPS_FORMAT_UCHAR, let start = memory.lend({ vips_image_get_data($0) }) else {
            throw VipsFailure(text: "the pixels are not in memory as bytes")
        }
        defer { withExtendedLifetime(memory) {} }
        return try body(UnsafeRawBufferPointer(start: start, count: size.pixels * memory.bands))
    }
}
