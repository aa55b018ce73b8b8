internal import CVips
internal import SystemPackage

/// A format with all that its encoder is told.
struct Encoding {
    let format: VariantSpec.Output
    /// 1 to 100; of no meaning to formats without one.
    var quality: Int
    /// 2 to 256; of a GIF.
    var colours: Int
    let options: VariantOptions

    init(_ format: VariantSpec.Output, quality: Int?, _ options: VariantOptions) {
        self.format = format
        self.options = options
        colours = options.whole(.colours) ?? ColourTable.most
        self.quality = quality ?? format.defaultQuality ?? 100
        // What loses nothing has no quality; libwebp would take it for an effort.
        if isLossless { self.quality = format.defaultQuality ?? 100 }
    }

    /// What is lowered for a smaller file, and the least that makes sense: a GIF's colours, others' quality. Nil where
    /// there is nothing to lower.
    var strength: (path: WritableKeyPath<Encoding, Int>, weakest: Int)? {
        if format == .gif { return (\Encoding.colours, 2) }
        guard format.defaultQuality != nil, !isLossless else { return nil }
        return (\Encoding.quality, 1)
    }

    /// Whether all pixels, or nearly all, come out as they are.
    var isLossless: Bool {
        options.flag(.lossless) && VariantOption.lossless.applies(to: format)
            || format == .webp && options.whole(.nearLossless) != nil
    }

    private var effort: Int? {
        guard let efforts = format.efforts, let wanted = options.whole(.effort) else { return nil }
        return min(max(wanted, efforts.lowerBound), efforts.upperBound)
    }

    fileprivate var chroma: VipsForeignSubsample {
        // libvips would halve the colours of a lossless AVIF below its quality 90.
        if isLossless { return VIPS_FOREIGN_SUBSAMPLE_OFF }
        return switch options.word(.chroma) {
        case "420": VIPS_FOREIGN_SUBSAMPLE_ON
        case "444": VIPS_FOREIGN_SUBSAMPLE_OFF
        default: VIPS_FOREIGN_SUBSAMPLE_AUTO
        }
    }

    /// What libvips and libwebp take by default, unless named.
    func effort(pixels: Int) -> Int {
        if let effort = effort ?? format.usualEffort { return effort }
        return format == .jxl ? (pixels > Self.largeJXL ? 3 : 7) : (pixels > Self.largeAVIF ? 2 : 4)
    }

    /// From this quality on libvips keeps colours at full resolution unless told otherwise.
    static let fullChromaQuality = 90

    /// Pixels from which AVIF takes effort 2: four would take tens of seconds of the thirty an image has. (12 million
    /// pixels at effort 4 took 12 s on one core here, 5 s at 2.)
    private static let largeAVIF = 4_000_000

    /// Pixels from which JPEG XL takes effort 3, which needs half of the memory: see ``EncoderMemory``.
    private static let largeJXL = 8_000_000

    /// Of a palette; 0 for none: no more colours than are wanted. PNG has 1, 2, 4 or 8 bits.
    fileprivate var paletteBits: Int {
        guard let colours = options.whole(.colours) else { return 0 }
        let bits = Int.bitWidth - 1 - colours.leadingZeroBitCount
        return bits == 8 ? bits : bits >= 4 ? 4 : min(bits, 2)
    }

    fileprivate var webP: WebPEncoder.Settings {
        WebPEncoder.Settings(
            quality: quality, effort: effort(pixels: 0), isLossless: options.flag(.lossless),
            nearLossless: options.whole(.nearLossless))
    }
}

extension Picture {
    /// Encodes, and writes to `descriptor` from where it stands.
    func write(_ encoding: Encoding, to descriptor: FileDescriptor) throws(VipsFailure) {
        let isOurs = encoding.format == .gif || encoding.format == .avif || encoding.format == .webp && !hasMetadata
        if isOurs || encoding.format.needsCompleting && hasMetadata {
            return try encoded(encoding).write(to: descriptor)
        }
        try EncoderMemory.check(encoding, storedSize)
        // libvips works on a duplicate, and closes that.
        guard let target = vips_target_new_to_descriptor(descriptor.rawValue) else { throw VipsFailure.take() }
        defer { g_object_unref(target) }
        guard save(encoding, to: target) == 0 else { throw VipsFailure.take() }
    }

    func encoded(_ encoding: Encoding) throws(VipsFailure) -> EncodedFile {
        try EncoderMemory.check(encoding, storedSize)
        if encoding.format == .webp, !hasMetadata { return try webP(encoding) }
        if encoding.format == .gif { return try gif(colours: encoding.colours) }
        let file = try EncodedFile { save(encoding, to: $0) }.withMetadata(of: self, encoding.format)
        if encoding.format == .avif { try file.checkHeader(storedSize) }
        return file
    }

    private func webP(_ encoding: Encoding) throws(VipsFailure) -> EncodedFile {
        let coloured = bands < 3 ? try then { pw_vips_colourspace($0, &$1, VIPS_INTERPRETATION_sRGB) } : self
        let encoder = WebPEncoder(
            size: coloured.storedSize, hasAlpha: coloured.bands == 4, settings: encoding.webP)
        return try coloured.withPixels { (pixels) throws(VipsFailure) in try encoder.encode(pixels) }
    }

    /// Below it libvips asks libjxl for a distance above 25, which is refused, and gets the default's size.
    private static let lowestJXL: CInt = 5

    private func save(_ encoding: Encoding, to target: UnsafeMutablePointer<VipsTarget>) -> CInt {
        let quality = CInt(encoding.quality)
        let effort = CInt(encoding.effort(pixels: storedSize.pixels))
        let isLossless: gboolean = encoding.options.flag(.lossless) ? 1 : 0
        let isProgressive: gboolean = encoding.options.flag(.progressive) ? 1 : 0
        let strip: gboolean = hasMetadata || encoding.format == .png && hasTexts ? 0 : 1
        let bits = CInt(encoding.paletteBits)
        return lend { image in
            switch encoding.format {
            case .jpeg: pw_vips_save_jpeg(image, target, quality, isProgressive, encoding.chroma, strip)
            case .png: pw_vips_save_png(image, target, isProgressive, bits, effort, strip)
            case .avif: pw_vips_save_avif(image, target, quality, effort, isLossless, encoding.chroma, strip)
            case .jxl:
                pw_vips_save_jxl(image, target, max(quality, Self.lowestJXL), effort, isLossless, strip)
            // It has an encoder of its own.
            case .gif: -1
            case .tiff: pw_vips_save_tiff(image, target, strip)
            case .webp:
                pw_vips_save_webp(
                    image, target, CInt(encoding.options.whole(.nearLossless) ?? encoding.quality), effort, isLossless,
                    encoding.options.whole(.nearLossless) == nil ? 0 : 1)
            }
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

extension VariantSpec.Output {
    /// libvips 8.14 writes no EXIF into it, or writes it twice.
    fileprivate var needsCompleting: Bool { self == .tiff || self == .jxl || self == .png }
}
