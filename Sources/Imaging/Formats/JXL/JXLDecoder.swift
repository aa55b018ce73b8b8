internal import CJXL
internal import CVips
internal import Core
import ImageFiles

/// libjxl's decoder, and the pixels it writes to: four channels of eight bits.
///
/// The only owner of its handle. https://libjxl.readthedocs.io/en/latest/api_decoder.html
final class JXLDecoder {
    private let decoder: OpaquePointer
    private var pixels = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var format = JxlPixelFormat(
        num_channels: 4, data_type: JXL_TYPE_UINT8, endianness: JXL_NATIVE_ENDIAN, align: 0)

    /// - Parameter bytes: must stay valid as long as the decoder.
    init?(_ bytes: UnsafeRawBufferPointer, events: [JxlDecoderStatus]) {
        guard let decoder = JxlDecoderCreate(nil) else { return nil }
        self.decoder = decoder
        let wanted = events.reduce(0) { $0 | CInt(bitPattern: $1.rawValue) }
        guard JxlDecoderSubscribeEvents(decoder, wanted) == JXL_DEC_SUCCESS,
            JxlDecoderSetInput(decoder, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count) == JXL_DEC_SUCCESS
        else { return nil }
    }

    deinit {
        JxlDecoderDestroy(decoder)
        free(pixels.baseAddress)
    }

    /// `JXL_DEC_NEED_MORE_INPUT` if the file ends early. If the input were closed before, libjxl would report an error,
    /// as for a damaged file.
    func next() -> JxlDecoderStatus {
        let status = JxlDecoderProcessInput(decoder)
        guard status == JXL_DEC_NEED_MORE_INPUT else { return status }
        // The picture may be complete, and only boxes that could follow are missing.
        JxlDecoderCloseInput(decoder)
        return JxlDecoderProcessInput(decoder) == JXL_DEC_SUCCESS ? JXL_DEC_SUCCESS : status
    }

    /// Nil before it is known.
    var info: JxlBasicInfo? {
        var info = JxlBasicInfo()
        return JxlDecoderGetBasicInfo(decoder, &info) == JXL_DEC_SUCCESS ? info : nil
    }

    /// Upright: libjxl applies the orientation.
    var size: PixelSize {
        info.map { PixelSize(width: Int($0.xsize), height: Int($0.ysize)) } ?? PixelSize(width: 0, height: 0)
    }

    /// The duration of the frame that comes next, in the file's ticks.
    var ticks: Int {
        var header = JxlFrameHeader()
        return JxlDecoderGetFrameHeader(decoder, &header) == JXL_DEC_SUCCESS ? Int(header.duration) : 0
    }

    /// Allocates memory for a frame, which is the whole canvas.
    func allocateFrame(_ limits: ImageLimits) throws(Failure) {
        if let objection = limits.objection(width: size.width, height: size.height) { throw objection }
        var count = 0
        guard JxlDecoderImageOutBufferSize(decoder, &format, &count) == JXL_DEC_SUCCESS, count == 4 * size.pixels else {
            throw Failure(.badImage, "The jxl has frames of another size than its header says.")
        }
        if pixels.count != count {
            free(pixels.baseAddress)
            pixels = UnsafeMutableRawBufferPointer(start: nil, count: 0)
            guard let memory = malloc(count) else {
                throw MemoryShortage.failure(
                    "To decode the jxl of \(size.width)×\(size.height) pixels takes memory that")
            }
            pixels = UnsafeMutableRawBufferPointer(start: memory, count: count)
        }
        guard JxlDecoderSetImageOutBuffer(decoder, &format, pixels.baseAddress, count) == JXL_DEC_SUCCESS else {
            throw Failure(.badImage, "The jxl's frames cannot be decoded.")
        }
    }

    /// Lends the frame that was decoded last.
    func lend(_ body: (UnsafeRawBufferPointer) -> Void) {
        withExtendedLifetime(self) { body(UnsafeRawBufferPointer(pixels)) }
    }

    /// A copy of the frame that was decoded last.
    func picture() throws(Failure) -> Picture {
        do throws(VipsFailure) {
            let picture = try Picture(rgba: UnsafeRawBufferPointer(pixels), size)
            if let profile { profile.withUnsafeBytes { picture.set(VIPS_META_ICC_NAME, to: $0) } }
            return picture
        } catch {
            throw error.error(.transform, "The jxl's first frame could not be copied")
        }
    }

    private var profile: [UInt8]? {
        var count = 0
        guard pw_jxl_profile_size(decoder, &count) == JXL_DEC_SUCCESS, count > 0 else { return nil }
        var profile = [UInt8](repeating: 0, count: count)
        return pw_jxl_profile(decoder, &profile, count) == JXL_DEC_SUCCESS ? profile : nil
    }
}
