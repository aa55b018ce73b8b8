internal import CVips

extension Picture {
    /// Whether ``shrunk(to:)`` takes this picture: eight bits a channel, four channels at most, and no side grows.
    func canBeShrunk(to size: PixelSize) -> Bool {
        let from = storedSize
        return bandFormat == VIPS_FORMAT_UCHAR && bands <= 4 && size.width <= from.width && size.height <= from.height
    }

    /// Scaled down in memory, whole lines at a time: a picture that is still to be decoded is never held at full size.
    func shrunk(to size: PixelSize) throws(VipsFailure) -> Picture {
        let target = try emptyCopy(of: size)
        let layout = PixelLayout(channels: bands, hasAlpha: hasAlpha)
        var resampler = Resampler(from: storedSize, to: size, layout: layout)
        let scratch = UnsafeMutablePointer<UInt8>.allocate(capacity: size.width * bands)
        defer { scratch.deallocate() }
        var written: CInt = 0
        try eachRow { row throws(VipsFailure) in
            resampler.take(row)
            while resampler.hasLine {
                resampler.give(scratch)
                let result = target.lend { vips_image_write_line($0, written, scratch) }
                guard result == 0 else { throw VipsFailure.take() }
                written += 1
            }
        }
        return target
    }

    /// With this one's metadata and kind of pixels, in memory, for its lines to be written.
    func emptyCopy(of size: PixelSize) throws(VipsFailure) -> Picture {
        try Picture { result in
            result = vips_image_new_memory()
            guard let target = result else { return -1 }
            let copied = lend { source in
                var inputs: [UnsafeMutablePointer<VipsImage>?] = [source, nil]
                return vips_image_pipeline_array(target, VIPS_DEMAND_STYLE_THINSTRIP, &inputs)
            }
            pw_vips_set_size(target, CInt(size.width), CInt(size.height))
            return copied
        }
    }

    /// Lends the rows from the top, each once, decoding as they are needed.
    private func eachRow(_ body: (UnsafePointer<UInt8>) throws(VipsFailure) -> Void) throws(VipsFailure) {
        let size = storedSize
        guard let region = lend({ vips_region_new($0) }) else { throw VipsFailure.take() }
        defer { g_object_unref(region) }
        for top in stride(from: 0, to: size.height, by: Self.strip) {
            let height = min(Self.strip, size.height - top)
            var area = VipsRect(left: 0, top: CInt(top), width: CInt(size.width), height: CInt(height))
            guard vips_region_prepare(region, &area) == 0 else { throw VipsFailure.take() }
            for line in top..<top + height {
                guard let row = pw_vips_region_row(region, CInt(line)) else { throw VipsFailure(text: "no such row") }
                try body(row)
            }
        }
    }

    /// Lines decoded at a time: two rows of JPEG blocks with halved chroma.
    private static let strip = 16
}
