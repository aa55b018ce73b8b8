internal import CVips
internal import Core
import ImageFiles
internal import SystemPackage
import Variants

/// Writes AVIF and HEIC: stills by libheif through libvips, animated AVIF by libavif.
struct HEIFSaver: FormatSaver {
    /// `avif` or `heic`.
    let format: VariantSpec.Output

    func bytesPerPixel(_ encoding: Encoding, effort: Int, hasAlpha: Bool) -> Int { Self.bytesPerPixel }
    func usualEffort(pixels: Int) -> Int { pixels > Self.largePicture ? 2 : 4 }

    static let bytesPerPixel = 33

    /// Pixels from which effort 2 is used, since effort 4 would take tens of seconds of an image's 30 s. (12 million
    /// pixels took 12 s at effort 4 on one core here, and 5 s at effort 2.) HEIC has no effort.
    private static let largePicture = 4_000_000

    func isWrittenByLibvips(_ picture: Picture) -> Bool { false }

    func save(_ picture: Picture, _ encoding: Encoding, to target: UnsafeMutablePointer<VipsTarget>) -> CInt {
        let effort = encoding.effort(for: picture)
        let compression = format == .avif ? VIPS_FOREIGN_HEIF_COMPRESSION_AV1 : VIPS_FOREIGN_HEIF_COMPRESSION_HEVC
        return picture.lend {
            pw_vips_save_heif(
                $0, target, compression, CInt(encoding.quality), effort, encoding.losesNothing, encoding.chroma,
                picture.strip)
        }
    }

    func file(of picture: Picture, _ encoding: Encoding) throws(VipsFailure) -> EncodedFile {
        let file: EncodedFile
        do throws(VipsFailure) {
            file = try EncodedFile { save(picture, encoding, to: $0) }
        } catch {
            throw Self.naming(error, format)
        }
        try file.checkHeader(picture.storedSize, as: format == .avif ? .avif : .heic)
        return file
    }

    /// The same failure, with the package that is missing if libheif has no encoder.
    private static func naming(_ error: VipsFailure, _ format: VariantSpec.Output) -> VipsFailure {
        guard error.text.contains("nsupported compression") else { return error }
        let (library, package) =
            format == .avif ? ("libaom3", "libheif-plugin-aomenc") : ("libx265", "libheif-plugin-x265")
        return VipsFailure(
            text:
                "libheif has no encoder for \(format.rawValue) here; install \(package), or a libheif1 that was built "
                + "with \(library)")
    }

    func animated(_ spec: VariantSpec) -> (any AnimationSaver)? { format == .avif ? AVIFAnimationSaver(spec) : nil }
}

/// Writes animations with the quality and the colours of stills, and faster.
private struct AVIFAnimationSaver: AnimationSaver {
    let strength: Int
    let weakest: Int?
    let holdsProfile = true
    private let isLossless: Bool
    private let effort: Int?
    private let chroma: String?

    /// As for stills, an effort is 9 less libaom's speed. Up to effort 2 libaom encodes in real time, without looking at
    /// later frames. Measured with libaom 3.6, one thread, on a film of 500×279.
    private static let efforts = AnimationEfforts(
        slowness: [0: 2, 1: 2, 2: 2, 3: 20, 4: 26, 5: 32, 6: 60, 7: 120, 8: 400, 9: 1_000], usual: 4)

    init(_ spec: VariantSpec) {
        isLossless = spec.options.flag(.lossless)
        effort = spec.options.whole(.effort)
        chroma = spec.options.word(.chroma)
        strength = spec.quality ?? VariantSpec.Output.avif.defaultQuality ?? 55
        weakest = isLossless ? nil : 1
    }

    func slowness(_ outline: AnimationOutline) -> Int { Self.efforts.slowness(effort, for: outline) }

    func begin(
        _ output: FileDescriptor, _ outline: AnimationOutline, strength: Int, _ metadata: AnimationMetadata,
    ) throws(Failure) -> any FrameSink {
        try Self.efforts.check(outline, "avif")
        try EncoderMemory.check("avif", outline.size, bytesPerPixel: HEIFSaver.bytesPerPixel)
        let isFull =
            isLossless || chroma == "444" || chroma != "420" && strength >= VariantSpec.Output.fullChromaQuality
        let settings = AVIFFrameSettings(
            quality: isLossless ? nil : strength, speed: 9 - Self.efforts.effort(effort, for: outline),
            halvesColours: !isFull)
        return try AVIFFrameSink(output, outline, settings, metadata: metadata)
    }
}

extension EncodedFile {
    /// Checks that a decoder finds a picture of this size in the AVIF or HEIC.
    func checkHeader(_ size: PixelSize, as format: HEIFFormat) throws(VipsFailure) {
        let found = try lend { (bytes) throws(VipsFailure) in
            try Picture(of: bytes, as: format).storedSize
        }
        guard found == size else {
            throw VipsFailure(text: "the encoder wrote \(found.width)×\(found.height) pixels")
        }
    }
}
