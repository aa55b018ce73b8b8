internal import CJXL
internal import CVips
internal import Core
import ImageFiles

/// Decodes an animated JPEG XL with libjxl directly: libvips 8.14 delivers the last frame, and the first is needed.
struct JXLAnimation {
    let frames: Int
    /// The canvas, how often it plays, and whether the file ends within a frame; nil if only its pixels are of interest.
    private(set) var facts: AnimationFacts?
    private let bytes: UnsafeRawBufferPointer

    /// Reads only the headers.
    ///
    /// - Returns: nil for a still, and for a file that ends or is damaged before that is known; its decoder reports the
    ///   reason.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let decoder = JXLDecoder(bytes, events: [JXL_DEC_BASIC_INFO, JXL_DEC_FRAME]) else { return nil }
        var facts: AnimationFacts?
        var count = 0
        var endsEarly = false
        events: while true {
            switch decoder.next() {
            case JXL_DEC_BASIC_INFO:
                guard let info = decoder.info, info.have_animation == JXL_TRUE else { return nil }
                facts = AnimationFacts(canvas: decoder.size, loopCount: Int(info.animation.num_loops))
            case JXL_DEC_FRAME: count += 1
            case JXL_DEC_NEED_MORE_INPUT:
                endsEarly = true
                break events
            default: break events
            }
        }
        guard count > 0 else { return nil }
        self.init(bytes, frames: count)
        facts?.frames = count
        facts?.wholeFrames = endsEarly ? count - 1 : count
        facts?.endsEarly = endsEarly
        self.facts = facts
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
            case JXL_DEC_NEED_IMAGE_OUT_BUFFER: try decoder.allocateFrame(limits)
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
