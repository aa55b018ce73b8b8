internal import CJXL
internal import CVips
internal import Core

/// Decodes an animated JPEG XL with libjxl directly: libvips 8.14 delivers the last frame, and the first is needed.
struct JXLAnimation {
    let frames: Int
    private let bytes: UnsafeRawBufferPointer

    /// Reads only the headers.
    ///
    /// - Returns: nil for a still, and for a file that ends or is damaged before that is known; its decoder reports the
    ///   reason.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let decoder = JXLDecoder(bytes, events: [JXL_DEC_BASIC_INFO, JXL_DEC_FRAME]) else { return nil }
        var count = 0
        events: while true {
            switch decoder.next() {
            case JXL_DEC_BASIC_INFO: guard decoder.info?.have_animation == JXL_TRUE else { return nil }
            case JXL_DEC_FRAME: count += 1
            default: break events
            }
        }
        guard count > 0 else { return nil }
        self.init(bytes, frames: count)
    }

    init(_ bytes: UnsafeRawBufferPointer, frames: Int) {
        self.bytes = bytes
        self.frames = frames
    }

    /// Why libvips cannot decode a file; libvips does not distinguish truncated from damaged files.
    static func objection(to bytes: UnsafeRawBufferPointer, _ limits: ImageLimits) -> Failure? {
        do throws(Failure) {
            _ = try JXLAnimation(bytes, frames: 1).firstFrame(limits)
            return nil
        } catch {
            return error
        }
    }

    /// The first frame, with its profile. The other frames are decoded too, to check that they are complete, unless
    /// there are more than the limit.
    ///
    /// - Throws: class `truncated` or `bad-image`.
    func firstFrame(_ limits: ImageLimits) throws(Failure) -> Picture {
        guard let decoder = JXLDecoder(bytes, events: [JXL_DEC_BASIC_INFO, JXL_DEC_COLOR_ENCODING, JXL_DEC_FULL_IMAGE])
        else {
            throw Failure(.transform, "libjxl has no memory for a decoder.")
        }
        var picture: Picture?
        while true {
            switch decoder.next() {
            case JXL_DEC_NEED_IMAGE_OUT_BUFFER: try decoder.makeRoom(limits)
            case JXL_DEC_FULL_IMAGE:
                if picture == nil { picture = try decoder.picture() }
                if !isWithin(limits, decoder.size), let picture { return picture }
            case JXL_DEC_SUCCESS:
                guard let picture else { throw Failure(.badImage, "The jxl has no frame.") }
                return picture
            case JXL_DEC_NEED_MORE_INPUT:
                throw Failure(.truncated, "The jxl ends before its frames do.")
            case JXL_DEC_ERROR: throw Failure(.badImage, "The jxl's frames cannot be decoded.")
            default: break
            }
        }
    }

    private func isWithin(_ limits: ImageLimits, _ size: PixelSize) -> Bool {
        limits.objection(frames: frames, of: size) == nil
    }
}

/// libjxl's decoder, and the pixels it writes to: four channels of eight bits.
private final class JXLDecoder {
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
        pixels.deallocate()
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

    /// Allocates memory for a frame, which is the whole canvas.
    func makeRoom(_ limits: ImageLimits) throws(Failure) {
        if let objection = limits.objection(width: size.width, height: size.height) { throw objection }
        var count = 0
        guard JxlDecoderImageOutBufferSize(decoder, &format, &count) == JXL_DEC_SUCCESS, count == 4 * size.pixels else {
            throw Failure(.badImage, "The jxl has frames of another size than it says.")
        }
        if pixels.count != count {
            pixels.deallocate()
            pixels = .allocate(byteCount: count, alignment: 16)
        }
        guard JxlDecoderSetImageOutBuffer(decoder, &format, pixels.baseAddress, count) == JXL_DEC_SUCCESS else {
            throw Failure(.badImage, "The jxl's frames cannot be decoded.")
        }
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
