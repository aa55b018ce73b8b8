internal import CVips
internal import CWebP
internal import Core
import ImageFiles
internal import SystemPackage
import Variants

/// WebP: stills through libvips, animations and most files by libwebp directly. RFC 9649.
struct WebPFormat: FormatDefinition {
    let header: any FormatHeader = ImageFormat.webp.header
    let loaderClass: String? = "VipsForeignLoadWebpSource"
    let libraries = ["vips", "webp"]
    let saver: (any FormatSaver)? = WebPSaver()

    /// libvips holds a second copy of the whole picture.
    let bytesPerPixel = 8

    func animation(_ bytes: UnsafeRawBufferPointer) -> AnimationFacts? { AnimationFacts(webp: bytes) }

    func hasExtras(_ reader: ByteReader, _ policy: MetadataPolicy) -> Bool { WebPChunk.areExtra(in: reader, policy) }

    // MARK: - Loader

    func load(
        _ source: UnsafeMutablePointer<VipsSource>, _ scale: DecodeScale, isLenient: Bool,
        _ result: inout UnsafeMutablePointer<VipsImage>?,
    ) -> CInt {
        let factor: Double = if case .webp(let factor) = scale { factor } else { 1 }
        return pw_vips_load_webp(source, &result, factor)
    }

    /// libwebp takes as long to deliver a smaller picture, so it scales only pictures that would need much memory; each
    /// size is then decoded separately.
    func scale(from: PixelSize, to: PixelSize) -> DecodeScale {
        let shrink = min(Double(from.width) / Double(to.width), Double(from.height) / Double(to.height))
        return shrink > 1 && from.pixels > Self.largePicture ? .webp(1 / shrink) : .full
    }

    /// In pixels; 64 MiB of RGBA.
    private static let largePicture = 16 << 20

    func frames(
        _ bytes: UnsafeRawBufferPointer, limits: ImageLimits, isLenient: Bool,
    ) throws(Failure) -> (any FrameSource)? {
        try WebPFrameSource(bytes: bytes, limits: limits, isLenient: isLenient)
    }

    func patched(_ file: UnsafeRawBufferPointer) -> PatchedBytes? { PatchedBytes(cuttingMetadataOffWebP: file) }

    func mended(_ file: UnsafeRawBufferPointer, limits: ImageLimits) -> PatchedBytes? {
        PatchedBytes(endingEarly: file)
    }

    func hidingMetadata(_ file: UnsafeRawBufferPointer) -> PatchedBytes? { PatchedBytes(hidingMetadataOfWebP: file) }

    /// The rows that can be decoded; the rest is transparent. Reads the original file: libwebp's incremental decoder
    /// waits for the announced bytes, and shows the rows that it has.
    func beginning(_ original: UnsafeRawBufferPointer, _ size: PixelSize) throws(VipsFailure) -> Picture? {
        guard let decoded = IncrementalWebP(original, width: size.width) else { return nil }
        let missing = [UInt8](repeating: 0, count: max(0, size.pixels * 4 - decoded.pixels.count))
        return try Picture(rgba: decoded.pixels + missing, size)
    }

    func preview(_ bytes: UnsafeRawBufferPointer, _ size: PixelSize) -> PictureBeginning? {
        guard let decoded = IncrementalWebP(bytes, width: size.width) else { return nil }
        return PictureBeginning(decoded.rows) {
            try Picture(rgba: decoded.pixels, PixelSize(width: size.width, height: decoded.rows))
        }
    }

    let sample = """
        UklGRjgAAABXRUJQVlA4ICwAAACwAQCdASoQABAAAsBMJaACdLoAAAAAAOyPwrFP8W0joUyH/xDnEFtR1iAAAA==
        """
}

struct WebPSaver: FormatSaver {
    func bytesPerPixel(_ encoding: Encoding, effort: Int, hasAlpha: Bool) -> Int { encoding.isLossless ? 30 : 10 }

    /// A file without metadata is written by libwebp directly.
    func isWrittenByLibvips(_ picture: Picture) -> Bool { picture.hasMetadata }

    func save(_ picture: Picture, _ encoding: Encoding, to target: UnsafeMutablePointer<VipsTarget>) -> CInt {
        let near = encoding.options.whole(.nearLossless)
        let effort = encoding.effort(for: picture)
        return picture.lend {
            pw_vips_save_webp(
                $0, target, CInt(near ?? encoding.quality), effort, encoding.losesNothing, near == nil ? 0 : 1)
        }
    }

    func file(of picture: Picture, _ encoding: Encoding) throws(VipsFailure) -> EncodedFile {
        guard !picture.hasMetadata else { return try EncodedFile { save(picture, encoding, to: $0) } }
        let coloured =
            picture.bands < 3 ? try picture.then { pw_vips_colourspace($0, &$1, VIPS_INTERPRETATION_sRGB) } : picture
        let settings = WebPEncoder.Settings(
            quality: encoding.quality, effort: encoding.effort(pixels: 0),
            isLossless: encoding.options.flag(.lossless), nearLossless: encoding.options.whole(.nearLossless))
        let encoder = WebPEncoder(size: coloured.storedSize, hasAlpha: coloured.bands == 4, settings: settings)
        return try coloured.withPixels { (pixels) throws(VipsFailure) in try encoder.encode(pixels) }
    }

    func animated(_ spec: VariantSpec) -> (any AnimationSaver)? { WebPAnimationSaver(spec) }
}

private struct WebPAnimationSaver: AnimationSaver {
    let strength: Int
    let weakest: Int?
    let holdsProfile = true
    private let effort: Int
    /// The lossless compression at the given strength; nil for a lossy file.
    private let lossless: WebPFrameSettings.Compression?

    init(_ spec: VariantSpec) {
        let near = spec.options.whole(.nearLossless)
        let isLossless = spec.options.flag(.lossless) || near != nil
        lossless = isLossless ? .lossless(nearLossless: near) : nil
        effort = min(spec.options.whole(.effort) ?? 4, 6)
        (strength, weakest) = (spec.quality ?? 80, isLossless ? nil : 1)
    }

    func begin(
        _ output: FileDescriptor, _ outline: AnimationOutline, strength: Int, _ metadata: AnimationMetadata,
    ) throws(Failure) -> any FrameSink {
        let settings = WebPFrameSettings(compression: lossless ?? .lossy(quality: strength), effort: effort)
        return try WebPFrameSink(output, size: outline.size, loopCount: outline.loopCount, settings, metadata: metadata)
    }
}

extension PatchedBytes {
    /// A cut WebP, changed so that it ends where its bytes do: its last chunk is shortened, or left out if it does not
    /// hold a still's pixels. Nil if the file is not cut.
    convenience init?(endingEarly webp: UnsafeRawBufferPointer) {
        let reader = ByteReader(webp)
        guard let cut = Self.cutChunk(of: reader) else { return nil }
        self.init(webp)
        var end = cut.offset
        let names: [StaticString] = ["VP8 ", "VP8L", "ALPH"]
        if webp.count > end + 8, names.contains(where: { reader.has($0, at: end) }) {
            let room = (webp.count - end - 8) & ~1
            memory.storeBytes(of: UInt32(truncatingIfNeeded: room).littleEndian, toByteOffset: end + 4, as: UInt32.self)
            end += 8 + room
        }
        endWebP(at: end)
    }

    /// A WebP that is cut after its picture, without the incomplete chunk: every pixel is there, and metadata are no
    /// reason to refuse them. Nil if the file is whole, or cut before the end of its picture.
    convenience init?(cuttingMetadataOffWebP file: UnsafeRawBufferPointer) {
        guard let cut = Self.cutChunk(of: ByteReader(file)), cut.isAfterPicture else { return nil }
        self.init(file)
        endWebP(at: cut.offset)
    }

    private func endWebP(at end: Int) {
        memory.storeBytes(of: UInt32(truncatingIfNeeded: end - 8).littleEndian, toByteOffset: 4, as: UInt32.self)
    }

    /// Where the incomplete chunk of a cut file begins; nil if the file is whole. A still's pixels are complete if they
    /// come before it. An animation's are known to be complete only if the incomplete chunk has metadata.
    private static func cutChunk(of reader: ByteReader) -> (offset: Int, isAfterPicture: Bool)? {
        guard ImageFormat.webp.header.endsEarly(reader), reader.contains(0, length: 20) else { return nil }
        var offset = 12
        var hasPixels = false
        var hasFrames = false
        while let length = reader.little(4, at: offset + 4), reader.contains(offset + 8, length: length) {
            hasPixels = hasPixels || reader.has("VP8 ", at: offset) || reader.has("VP8L", at: offset)
            hasFrames = hasFrames || reader.has("ANMF", at: offset)
            offset += 8 + length + length % 2
        }
        let isInMetadata = reader.has("EXIF", at: offset) || reader.has("XMP ", at: offset)
        return (min(offset, reader.count), hasPixels || hasFrames && isInMetadata)
    }

    /// EXIF and XMP become chunks that no library knows.
    convenience init(hidingMetadataOfWebP file: UnsafeRawBufferPointer) {
        self.init(file)
        let reader = ByteReader(bytes)
        var offset = 12
        while let length = reader.little(4, at: offset + 4), reader.contains(offset, length: 8) {
            if reader.has("EXIF", at: offset) || reader.has("XMP ", at: offset) { memory[offset] = UInt8(ascii: "x") }
            offset += 8 + length + length % 2
        }
    }
}

/// Decodes the first bytes of a still WebP with libwebp's incremental decoder.
/// https://developers.google.com/speed/webp/docs/api#incremental_decoding
struct IncrementalWebP {
    /// Rows from the top whose pixels are final.
    let rows: Int
    /// RGBA of those rows.
    let pixels: [UInt8]

    /// - Returns: nil before the first row is complete, and if the bytes cannot be decoded.
    init?(_ bytes: UnsafeRawBufferPointer, width: Int) {
        guard let decoder = WebPINewRGB(MODE_RGBA, nil, 0, 0) else { return nil }
        defer { WebPIDelete(decoder) }
        let status = WebPIUpdate(decoder, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
        guard status == VP8_STATUS_OK || status == VP8_STATUS_SUSPENDED else { return nil }
        var last: CInt = 0
        var decodedWidth: CInt = 0
        var stride: CInt = 0
        guard let start = WebPIDecGetRGB(decoder, &last, &decodedWidth, nil, &stride), last > 0,
            Int(decodedWidth) == width
        else { return nil }
        rows = Int(last)
        pixels = (0..<Int(last)).flatMap { row in
            UnsafeBufferPointer(start: start + row * Int(stride), count: width * 4)
        }
    }
}
