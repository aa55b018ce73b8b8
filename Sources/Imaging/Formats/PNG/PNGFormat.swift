internal import CVips
internal import Core
import ImageFiles
internal import SystemPackage
import Variants

/// PNG, by libpng through libvips, which decodes an animation's frames one by one. W3C PNG, third edition.
struct PNGFormat: FormatDefinition {
    let header: any FormatHeader = ImageFormat.png.header
    let loaderClass: String? = "VipsForeignLoadPngSource"
    let saver: (any FormatSaver)? = PNGSaver()

    func endsEarly(_ reader: ByteReader) -> Bool { PNGChunks.endEarly(reader) }

    func animation(_ bytes: UnsafeRawBufferPointer) -> AnimationFacts? { AnimationFacts(png: bytes) }

    func frames(
        _ bytes: UnsafeRawBufferPointer, limits: ImageLimits, isLenient: Bool,
    ) throws(Failure) -> (any FrameSource)? {
        try PNGFrameSource(bytes: bytes, limits: limits, isLenient: isLenient)
    }

    func hasExtras(_ reader: ByteReader, _ policy: MetadataPolicy) -> Bool { PNGChunks.areExtra(in: reader, policy) }

    // MARK: - Loader

    func load(
        _ source: UnsafeMutablePointer<VipsSource>, _ scale: DecodeScale, isLenient: Bool,
        _ result: inout UnsafeMutablePointer<VipsImage>?,
    ) -> CInt { pw_vips_load_png(source, &result, isLenient ? 1 : 0) }

    /// A copy without texts that unpack to more than the limit.
    func patched(_ file: UnsafeRawBufferPointer) -> PatchedBytes? {
        PNGTexts.excess(ByteReader(file)).map { PatchedBytes(hidingTextsOf: file, from: $0) }
    }

    func mended(_ file: UnsafeRawBufferPointer, limits: ImageLimits) -> PatchedBytes? {
        PatchedBytes(unlacing: file, maxBytes: limits.decoderBytes) ?? PatchedBytes(mendingPNG: file)
    }

    func hidingMetadata(_ file: UnsafeRawBufferPointer) -> PatchedBytes? { PatchedBytes(hidingMetadataOfPNG: file) }

    let emptySamples: ClosedRange<UInt8>? = 0...0

    func preview(_ bytes: UnsafeRawBufferPointer, _ size: PixelSize) -> PictureBeginning? {
        guard let data = PNGData(bytes) else { return nil }
        guard data.isInterlaced else {
            return PictureBeginning(data.rows) { try Self.decoded(PatchedBytes(mendingPNG: bytes)) }
        }
        guard let laced = InterlacedPNG(bytes, maxBytes: ImageLimits().decoderBytes) else { return nil }
        return PictureBeginning(laced.rows) {
            try PatchedBytes(unlacing: bytes, maxBytes: ImageLimits().decoderBytes).map(Self.decoded)
                ?? { throw VipsFailure(text: "no row could be decoded") }()
        }
    }

    private static func decoded(_ file: PatchedBytes) throws -> Picture {
        try Picture(of: file.bytes, as: PNGFormat(), isLenient: true).inMemory()
    }

    let sample = """
        iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAACXBIWXMAAAPoAAAD6AG1e1JrAAAAFklEQVQokWM4kWJEEmIY1TCqYfhq
        AACoeF4Q/aZkzQAAAABJRU5ErkJggg==
        """
}

private struct PNGAnimationSaver: AnimationSaver {
    let strength = 0
    let weakest: Int? = nil
    let holdsProfile = true

    func begin(
        _ output: FileDescriptor, _ outline: AnimationOutline, strength: Int, _ metadata: AnimationMetadata,
    ) throws(Failure) -> any FrameSink {
        try PNGFrameSink(output, size: outline.size, loopCount: outline.loopCount, metadata: metadata)
    }
}

private struct PNGSaver: FormatSaver {
    func animated(_ spec: VariantSpec) -> (any AnimationSaver)? { PNGAnimationSaver() }

    func save(_ picture: Picture, _ encoding: Encoding, to target: UnsafeMutablePointer<VipsTarget>) -> CInt {
        let strip: gboolean = picture.hasMetadata || picture.hasTexts ? 0 : 1
        let (bits, effort) = (Self.paletteBits(encoding), encoding.effort(for: picture))
        return picture.lend { pw_vips_save_png($0, target, encoding.isProgressive, bits, effort, strip) }
    }

    /// Bits of the palette's indices for at most the requested number of colours; 0 for no palette. PNG has 1, 2, 4 or
    /// 8 bits.
    private static func paletteBits(_ encoding: Encoding) -> CInt {
        guard let colours = encoding.options.whole(.colours) else { return 0 }
        let bits = Int.bitWidth - 1 - colours.leadingZeroBitCount
        return CInt(bits == 8 ? bits : bits >= 4 ? 4 : min(bits, 2))
    }

    func file(of picture: Picture, _ encoding: Encoding) throws(VipsFailure) -> EncodedFile {
        let file = try EncodedFile { save(picture, encoding, to: $0) }
        return picture.exifBlock == nil ? file : Self.withOneExif(file)
    }

    /// libpng writes EXIF before the pixels and again after them; the standard allows it once.
    private static func withOneExif(_ encoded: EncodedFile) -> EncodedFile {
        encoded.lend { file in
            let reader = ByteReader(file)
            let end = 12
            var place = 8
            while let length = reader.big(4, at: place), !reader.has("IDAT", at: place + 4) {
                let again = file.count - end - length - 12
                if reader.has("eXIf", at: place + 4), again > place, reader.has("eXIf", at: again + 4) {
                    return EncodedFile(encoded, last: end + length + 12, tail: Array(file.suffix(end)))
                }
                place += length + 12
            }
            return encoded
        }
    }
}
