import CJXL
internal import Core
import ImageFiles
internal import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The encoder settings for the frames of an animated JPEG XL.
struct JXLFrameSettings {
    /// 5 to 100; nil for a lossless file.
    let quality: Int?
    /// 3 to 9.
    let effort: Int

    /// libvips' distance for a quality, so that an animation looks like a still of the same quality.
    var distance: Float {
        guard let quality else { return 0 }
        return quality >= 30
            ? 0.1 + Float(100 - quality) * 0.09 : 6.4 + Float(pow(2.5, Double(30 - quality) / 5)) / 6.25
    }
}

/// Writes an animated JPEG XL with libjxl's encoder. Each frame is written before the next but one comes.
///
/// A frame is held until the next one comes, since only the last is marked as such. libjxl runs without threads, so the
/// bytes do not depend on the machine. The only owner of its handle.
/// https://libjxl.readthedocs.io/en/latest/api_encoder.html
final class JXLFrameSink: FrameSink {
    private let descriptor: FileDescriptor
    private let encoder: OpaquePointer
    private let settings: OpaquePointer
    private let waiting: PixelBuffer
    /// The held frame's duration, in milliseconds; nil if no frame is held.
    private var duration: Int?
    /// The boxes before the codestream, until they are written.
    private var head: [UInt8]

    /// - Parameter descriptor: of a regular file.
    init(
        _ descriptor: FileDescriptor, _ outline: AnimationOutline, _ settings: JXLFrameSettings,
        metadata: AnimationMetadata = AnimationMetadata(),
    ) throws(Failure) {
        self.descriptor = descriptor
        waiting = try PixelBuffer(outline.size)
        guard let encoder = JxlEncoderCreate(nil) else { throw Self.failure("has no memory for an encoder") }
        self.encoder = encoder
        guard let frames = JxlEncoderFrameSettingsCreate(encoder, nil) else {
            JxlEncoderDestroy(encoder)
            throw Self.failure("has no memory for an encoder")
        }
        self.settings = frames
        let exif = metadata.exif.isEmpty ? nil : metadata.exif
        let xmp = metadata.xmp.isEmpty ? nil : metadata.xmp
        head =
            exif == nil && xmp == nil
            ? [] : JXLContainer.beginning + JXLContainer.metadata(exif, xmp) + JXLContainer.codestreamToTheEnd
        try begin(outline, settings, metadata.profile)
    }

    deinit { JxlEncoderDestroy(encoder) }

    private func begin(
        _ outline: AnimationOutline, _ settings: JXLFrameSettings, _ profile: [UInt8],
    ) throws(Failure) {
        var info = JxlBasicInfo()
        JxlEncoderInitBasicInfo(&info)
        (info.xsize, info.ysize) = (UInt32(clamping: outline.size.width), UInt32(clamping: outline.size.height))
        (info.bits_per_sample, info.num_color_channels) = (8, 3)
        // Whether a later frame has transparent pixels is not known yet.
        (info.num_extra_channels, info.alpha_bits) = (1, 8)
        info.uses_original_profile = settings.quality == nil ? JXL_TRUE : JXL_FALSE
        info.have_animation = JXL_TRUE
        (info.animation.tps_numerator, info.animation.tps_denominator) = (1_000, 1)
        info.animation.num_loops = UInt32(clamping: outline.loopCount)
        try check(JxlEncoderSetBasicInfo(encoder, &info))
        try setColours(profile)
        try check(
            JxlEncoderFrameSettingsSetOption(self.settings, JXL_ENC_FRAME_SETTING_EFFORT, Int64(settings.effort)))
        try check(JxlEncoderSetFrameDistance(self.settings, settings.distance))
        if settings.quality == nil { try check(JxlEncoderSetFrameLossless(self.settings, JXL_TRUE)) }
    }

    /// libjxl ends the process over some profiles that are not complete.
    private func setColours(_ profile: [UInt8]) throws(Failure) {
        let isWhole = profile.withUnsafeBytes { ColourProfile($0).isWhole(channels: 3) }
        if isWhole { return try check(JxlEncoderSetICCProfile(encoder, profile, profile.count)) }
        var colours = JxlColorEncoding()
        JxlColorEncodingSetToSRGB(&colours, JXL_FALSE)
        try check(JxlEncoderSetColorEncoding(encoder, &colours))
    }

    func add(_ pixels: PixelBuffer, duration: Int) throws(Failure) {
        if let held = self.duration { try writeWaiting(lasting: held, isLast: false) }
        waiting.copy(from: pixels)
        self.duration = duration
    }

    func finish() throws(Failure) {
        guard let duration else { throw Failure(.encode, "The animation has no frame to write.") }
        try writeWaiting(lasting: duration, isLast: true)
        self.duration = nil
    }

    private func writeWaiting(lasting duration: Int, isLast: Bool) throws(Failure) {
        var header = JxlFrameHeader()
        JxlEncoderInitFrameHeader(&header)
        header.duration = UInt32(clamping: duration)
        try check(JxlEncoderSetFrameHeader(settings, &header))
        var format = JxlPixelFormat(
            num_channels: 4, data_type: JXL_TYPE_UINT8, endianness: JXL_NATIVE_ENDIAN, align: 0)
        let status = waiting.lend { pixels in
            let bytes = UnsafeRawBufferPointer(pixels)
            return JxlEncoderAddImageFrame(settings, &format, bytes.baseAddress, bytes.count)
        }
        try check(status)
        if isLast { JxlEncoderCloseInput(encoder) }
        try drain()
    }

    /// Writes the encoder's finished output.
    private func drain() throws(Failure) {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        var status = JXL_ENC_NEED_MORE_OUTPUT
        while status == JXL_ENC_NEED_MORE_OUTPUT {
            var left = buffer.count
            status = buffer.withUnsafeMutableBufferPointer { room in
                var next = room.baseAddress
                return JxlEncoderProcessOutput(encoder, &next, &left)
            }
            guard status != JXL_ENC_ERROR else { throw Self.failure("could not encode a frame") }
            do {
                try descriptor.writeAll(head)
                head = []
                try descriptor.writeAll(buffer[..<(buffer.count - left)])
            } catch {
                throw Failure(.encode, "The animated JPEG XL could not be written: \(error)")
            }
        }
    }

    private func check(_ status: JxlEncoderStatus) throws(Failure) {
        guard status == JXL_ENC_SUCCESS else {
            throw Self.failure("refused the animation, error \(JxlEncoderGetError(encoder).rawValue)")
        }
    }

    private static func failure(_ what: String) -> Failure { Failure(.encode, "libjxl \(what).") }
}
