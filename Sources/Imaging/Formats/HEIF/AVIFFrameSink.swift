import CAVIF
internal import Core
import ImageFiles
internal import SystemPackage

/// The encoder settings for the frames of an animated AVIF.
struct AVIFFrameSettings {
    /// 1 to 100; nil for a lossless file.
    let quality: Int?
    /// libaom's speed, 0 (small) to 9 (fast).
    let speed: Int
    /// Whether the colours have half of the resolution.
    let halvesColours: Bool

    /// libheif's level for a quality, so that an animation looks like a still of the same quality.
    var level: Int { quality.map { ((100 - $0) * 63 + 50) / 100 } ?? 0 }
}

/// Writes an animated AVIF with libavif and libaom, which hold the encoded frames until the end.
///
/// libaom runs on one thread, so the bytes do not depend on the machine. libavif writes the time into the file and,
/// before 1.0, no number of loops: ``AVIFPlays`` changes both. The only owner of its handles.
/// https://github.com/AOMediaCodec/libavif/blob/v0.11.1/include/avif/avif.h
final class AVIFFrameSink: FrameSink {
    private let descriptor: FileDescriptor
    private let outline: AnimationOutline
    private let settings: AVIFFrameSettings
    private let encoder: UnsafeMutablePointer<avifEncoder>
    private let image: UnsafeMutablePointer<avifImage>
    private var frames = 0

    /// - Parameter descriptor: of a regular file.
    init(
        _ descriptor: FileDescriptor, _ outline: AnimationOutline, _ settings: AVIFFrameSettings,
        metadata: AnimationMetadata = AnimationMetadata(),
    ) throws(Failure) {
        self.descriptor = descriptor
        self.outline = outline
        self.settings = settings
        let format = settings.halvesColours ? AVIF_PIXEL_FORMAT_YUV420 : AVIF_PIXEL_FORMAT_YUV444
        let (width, height) = (UInt32(clamping: outline.size.width), UInt32(clamping: outline.size.height))
        guard let image = avifImageCreate(width, height, 8, format) else { throw Self.outOfMemory }
        guard let encoder = avifEncoderCreate() else {
            avifImageDestroy(image)
            throw Self.outOfMemory
        }
        (self.image, self.encoder) = (image, encoder)
        prepareEncoder()
        try prepareImage(metadata)
    }

    deinit {
        avifEncoderDestroy(encoder)
        avifImageDestroy(image)
    }

    private func prepareEncoder() {
        encoder.pointee.codecChoice = AVIF_CODEC_CHOICE_AOM
        encoder.pointee.maxThreads = 1
        encoder.pointee.speed = CInt(settings.speed)
        // Milliseconds.
        encoder.pointee.timescale = 1_000
        pw_avif_set_repetitions(encoder, CInt(clamping: outline.loopCount - 1))
        let worst = settings.quality == nil ? AVIF_QUANTIZER_LOSSLESS : AVIF_QUANTIZER_WORST_QUALITY
        (encoder.pointee.minQuantizer, encoder.pointee.maxQuantizer) = (AVIF_QUANTIZER_LOSSLESS, worst)
        (encoder.pointee.minQuantizerAlpha, encoder.pointee.maxQuantizerAlpha) = (AVIF_QUANTIZER_LOSSLESS, worst)
        guard settings.quality != nil else { return }
        avifEncoderSetCodecSpecificOption(encoder, "end-usage", "q")
        avifEncoderSetCodecSpecificOption(encoder, "cq-level", "\(settings.level)")
    }

    private func prepareImage(_ metadata: AnimationMetadata) throws(Failure) {
        image.pointee.yuvRange = AVIF_RANGE_FULL
        image.pointee.colorPrimaries = avifColorPrimaries(AVIF_COLOR_PRIMARIES_BT709)
        image.pointee.transferCharacteristics = avifTransferCharacteristics(AVIF_TRANSFER_CHARACTERISTICS_SRGB)
        // Lossless colours stay red, green and blue.
        let matrix = settings.quality == nil ? AVIF_MATRIX_COEFFICIENTS_IDENTITY : AVIF_MATRIX_COEFFICIENTS_BT601
        image.pointee.matrixCoefficients = avifMatrixCoefficients(matrix)
        let isWhole = metadata.profile.withUnsafeBytes { ColourProfile($0).isWhole(channels: 3) }
        if isWhole { avifImageSetProfileICC(image, metadata.profile, metadata.profile.count) }
        if !metadata.exif.isEmpty { avifImageSetMetadataExif(image, metadata.exif, metadata.exif.count) }
        if !metadata.xmp.isEmpty { avifImageSetMetadataXMP(image, metadata.xmp, metadata.xmp.count) }
        // Whether a later frame has transparent pixels is not known yet.
        let planes = avifPlanesFlags(AVIF_PLANES_ALL.rawValue)
        guard avifImageAllocatePlanes(image, planes) == AVIF_RESULT_OK else { throw Self.outOfMemory }
    }

    func add(_ pixels: PixelBuffer, duration: Int) throws(Failure) {
        var source = avifRGBImage()
        avifRGBImageSetDefaults(&source, image)
        (source.format, source.depth) = (AVIF_RGB_FORMAT_RGBA, 8)
        // libyuv's results depend on the machine.
        source.avoidLibYUV = AVIF_TRUE
        source.rowBytes = UInt32(clamping: outline.size.width * 4)
        let result = pixels.lend { pixels in
            UnsafeMutableRawBufferPointer(pixels).withMemoryRebound(to: UInt8.self) { bytes in
                source.pixels = bytes.baseAddress
                return avifImageRGBToYUV(image, &source)
            }
        }
        try check(result)
        let flags = avifAddImageFlags(AVIF_ADD_IMAGE_FLAG_NONE.rawValue)
        try check(avifEncoderAddImage(encoder, image, UInt64(max(1, duration)), flags))
        frames += 1
    }

    func finish() throws(Failure) {
        guard frames > 0 else { throw Failure(.encode, "The animation has no frame to write.") }
        var data = avifRWData()
        defer { avifRWDataFree(&data) }
        try check(avifEncoderFinish(encoder, &data))
        let bytes = UnsafeRawBufferPointer(start: data.data, count: data.size)
        guard let head = AVIFPlays(bytes, count: outline.loopCount) else {
            throw Failure(
                .encode, "libavif is of another version than this program was built for: its boxes are unknown.")
        }
        do {
            try descriptor.writeAll(head.bytes)
            try descriptor.writeAll(UnsafeRawBufferPointer(rebasing: bytes[head.length...]))
        } catch {
            throw Failure(.encode, "The animated AVIF could not be written: \(error)")
        }
    }

    private func check(_ result: avifResult) throws(Failure) {
        guard result != AVIF_RESULT_OK else { return }
        if result == AVIF_RESULT_NO_CODEC_AVAILABLE {
            throw Failure(
                .encode,
                "libavif has no encoder here; install libaom3 and a libavif that was built with it (libavif15).")
        }
        throw Failure(
            .encode, "libavif could not encode the animation: \(String(cString: avifResultToString(result))).")
    }

    private static var outOfMemory: Failure { Failure(.encode, "libavif has no memory for the animation.") }
}
