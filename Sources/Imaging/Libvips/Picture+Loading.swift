internal import CVips

/// How much smaller a decoder may deliver a picture, which saves most of its work.
enum DecodeScale: Equatable {
    case full
    /// libjpeg: 2, 4 or 8 times smaller in both axes.
    case jpeg(Int)
    /// libwebp: any factor below 1.
    case webp(Double)
}

extension Picture {
    /// Opens the first frame with the loader of `format` and no other: what a file claims to be in its first bytes is
    /// all it can be. Reads the header only; the pixels follow when they are asked for.
    ///
    /// - Parameters:
    ///   - bytes: must stay where they are as long as the picture, and what is made from it, is in use.
    ///   - isLenient: of a JPEG or PNG, what can't be decoded is left grey or transparent.
    convenience init(
        of bytes: UnsafeRawBufferPointer, as format: ImageFormat, scale: DecodeScale = .full, isLenient: Bool = false,
    ) throws(VipsFailure) {
        guard let source = Self.source(bytes, format) else { throw VipsFailure.take() }
        try self.init(reading: source) { result in
            guard Self.load(source, format, scale, isLenient, &result) == 0 else { return -1 }
            return Self.complete(&result, bytes, format)
        }
    }

    private static func load(
        _ source: UnsafeMutablePointer<VipsSource>, _ format: ImageFormat, _ scale: DecodeScale,
        _ isLenient: Bool, _ result: inout UnsafeMutablePointer<VipsImage>?,
    ) -> CInt {
        switch format {
        case .jpeg:
            let factor: Int = if case .jpeg(let factor) = scale { factor } else { 1 }
            return pw_vips_load_jpeg(source, &result, CInt(factor), isLenient ? 1 : 0)
        case .webp:
            let factor: Double = if case .webp(let factor) = scale { factor } else { 1 }
            return pw_vips_load_webp(source, &result, factor)
        case .png: return pw_vips_load_png(source, &result, isLenient ? 1 : 0)
        case .gif: return pw_vips_load_gif(source, &result)
        case .tiff: return pw_vips_load_tiff(source, &result)
        case .heic, .avif: return pw_vips_load_heif(source, &result)
        case .jxl: return pw_vips_load_jxl(source, &result)
        // It has a coder of its own, and libvips' way to it is blocked.
        case .bmp: return -1
        }
    }

    /// Of a JPEG it matters how much of it its decoder needed: see ``JPEGSuspicion``.
    private static func source(
        _ bytes: UnsafeRawBufferPointer, _ format: ImageFormat,
    ) -> UnsafeMutablePointer<VipsSource>? {
        guard format == .jpeg else { return vips_source_new_from_memory(bytes.baseAddress, bytes.count) }
        let end = JPEGScans.end(ByteReader(bytes))
        // libvips' buffer is of 4,096 bytes. It gives up where the end mark is missing, though libjpeg's bit reader only
        // looks ahead; whether pixels are missing too is judged when they have been decoded.
        return pw_vips_source_new(bytes.baseAddress, bytes.count, max(0, end - 4_096), end >= bytes.count ? 1 : 0)
    }
}

extension ImageFormat {
    /// The one libvips class that decodes it here: all others are blocked. Nil for what libvips doesn't decode.
    var loaderClass: String? {
        switch self {
        case .jpeg: "VipsForeignLoadJpegSource"
        case .png: "VipsForeignLoadPngSource"
        case .webp: "VipsForeignLoadWebpSource"
        case .gif: "VipsForeignLoadNsgifSource"
        case .tiff: "VipsForeignLoadTiffSource"
        case .heic, .avif: "VipsForeignLoadHeifSource"
        case .jxl: "VipsForeignLoadJxlSource"
        case .bmp: nil
        }
    }
}
