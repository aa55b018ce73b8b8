internal import CVips
internal import Core
import ImageFiles

extension Picture {
    /// Lends all pixels, row by row, with interleaved channels. Only for eight bits a channel.
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

    /// A copy of the pixels, in web colours, with an alpha.
    func pixelBuffer() throws(Failure) -> PixelBuffer {
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

    /// Whether ``shrunk(to:)`` supports this picture: eight bits a channel, at most four channels, and no side that
    /// grows.
    func canBeShrunk(to size: PixelSize) -> Bool {
        let from = storedSize
        return bandFormat == VIPS_FORMAT_UCHAR && bands <= 4 && size.width <= from.width && size.height <= from.height
    }

    /// Scaled down in memory, line by line: a picture that must still be decoded is never held at full size.
    func shrunk(to size: PixelSize) throws(VipsFailure) -> Picture {
        let shrink = try RowShrink(of: self, to: size)
        try eachRow { row throws(VipsFailure) in try shrink.take(row) }
        return shrink.target
    }

    /// A picture of each size, in memory.
    ///
    /// - Parameter again: opens this picture again, for sizes that cannot be made in one pass.
    func resized(
        toEach sizes: [PixelSize], again: () throws(VipsFailure) -> Picture,
    ) throws(VipsFailure) -> [Picture] {
        guard sizes.count > 1 else {
            return try sizes.map { (size) throws(VipsFailure) in try resized(to: size).inMemory() }
        }
        guard sizes.allSatisfy(canBeShrunk) else {
            // Not held as a whole, which would need much memory: such pictures have sixteen bits or more.
            var pictures: [Picture] = []
            for size in sizes {
                let opened = try pictures.isEmpty ? self : again()
                pictures.append(try opened.resized(to: size).inMemory())
            }
            return pictures
        }
        let shrinks = try sizes.map { (size) throws(VipsFailure) in try RowShrink(of: self, to: size) }
        try eachRow { row throws(VipsFailure) in
            for shrink in shrinks { try shrink.take(row) }
        }
        return shrinks.map(\.target)
    }

    /// An empty picture in memory with this one's metadata and pixel format, to which lines are written.
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

    /// Lends the rows from the top, each once, and decodes them as they are needed.
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

extension PixelBuffer {
    /// A copy that libvips can process.
    func picture() throws(Failure) -> Picture {
        do throws(VipsFailure) {
            return try lend { (pixels) throws(VipsFailure) in
                try Picture(rgba: UnsafeRawBufferPointer(pixels), size)
            }
        } catch {
            throw error.error(.transform, "A frame could not be handed to libvips")
        }
    }
}

/// Makes a smaller picture from another's rows, which come once and from the top.
private final class RowShrink {
    let target: Picture
    /// Nil if the size stays the same.
    private var resampler: Resampler?
    private let line: UnsafeMutablePointer<UInt8>
    private var written: CInt = 0

    init(of picture: Picture, to size: PixelSize) throws(VipsFailure) {
        target = try picture.emptyCopy(of: size)
        let from = picture.storedSize
        let layout = PixelLayout(channels: picture.bands, hasAlpha: picture.hasAlpha)
        resampler = from == size ? nil : Resampler(from: from, to: size, layout: layout)
        line = .allocate(capacity: size.width * picture.bands)
    }

    deinit { line.deallocate() }

    func take(_ row: UnsafePointer<UInt8>) throws(VipsFailure) {
        guard resampler != nil else { return try write(UnsafeMutablePointer(mutating: row)) }  // Only read.
        resampler?.take(row)
        while resampler?.hasLine == true {
            resampler?.give(line)
            try write(line)
        }
    }

    private func write(_ line: UnsafeMutablePointer<UInt8>) throws(VipsFailure) {
        guard target.lend({ vips_image_write_line($0, written, line) }) == 0 else { throw VipsFailure.take() }
        written += 1
    }
}
