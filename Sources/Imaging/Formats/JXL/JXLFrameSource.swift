import CJXL
internal import Core
import ImageFiles

/// Decodes an animated JPEG XL frame by frame, composed by libjxl.
final class JXLFrameSource: FrameSource {
    let canvas: PixelSize
    let loopCount: Int
    let frameCount: Int

    private let decoder: JXLDecoder
    private let limits: ImageLimits
    private let shown: PixelBuffer
    private var clock = FrameClock()
    private var given = 0

    /// - Parameter bytes: must stay valid as long as the source is used.
    /// - Throws: class `too-many-pixels` before any memory sized by the header is allocated; `bad-image` for a still.
    init(bytes: UnsafeRawBufferPointer, limits: ImageLimits) throws(Failure) {
        guard let facts = JXLAnimation(bytes)?.facts else {
            throw Failure(.badImage, "The jxl has no animation that can be read.")
        }
        try facts.check(limits)
        let events = [JXL_DEC_BASIC_INFO, JXL_DEC_FRAME, JXL_DEC_FULL_IMAGE]
        guard let decoder = JXLDecoder(bytes, events: events) else {
            throw Failure(.transform, "libjxl has no memory for a decoder.")
        }
        self.decoder = decoder
        self.limits = limits
        (canvas, loopCount, frameCount) = (facts.canvas, facts.loopCount, facts.frames)
        shown = try PixelBuffer(facts.canvas)
    }

    func next() throws(Failure) -> AnimationFrame? {
        while true {
            switch decoder.next() {
            case JXL_DEC_BASIC_INFO:
                guard let info = decoder.info, decoder.size == canvas else {
                    throw Failure(.badImage, "The jxl has two headers.")
                }
                clock = FrameClock(
                    ticks: Int(info.animation.tps_numerator), inSeconds: Int(info.animation.tps_denominator))
            case JXL_DEC_FRAME: clock.add(decoder.ticks)
            case JXL_DEC_NEED_IMAGE_OUT_BUFFER: try decoder.allocateFrame(limits)
            case JXL_DEC_FULL_IMAGE: return try frame()
            case JXL_DEC_SUCCESS:
                guard given > 0 else { throw Failure(.badImage, "The jxl has no frame.") }
                return nil
            case JXL_DEC_NEED_MORE_INPUT: throw Failure(.truncated, "The jxl ends before its frames do.")
            case JXL_DEC_ERROR: throw Failure(.badImage, "The jxl's frames cannot be decoded.")
            default: break
            }
        }
    }

    private func frame() throws(Failure) -> AnimationFrame {
        // The limits were checked for this number.
        guard given < frameCount else { throw Failure(.badImage, "The jxl has more frames than its headers say.") }
        given += 1
        decoder.lend { pixels in
            if let start = pixels.bindMemory(to: UInt8.self).baseAddress { shown.copy(from: start) }
        }
        return AnimationFrame(shown, lasting: clock.take())
    }
}

/// Turns a file's ticks into milliseconds. Each frame ends at the nearest millisecond, so that roundings do not add up.
struct FrameClock {
    private let perSecond: Double
    private var ticks = 0.0
    /// Where the last frame ended, in milliseconds.
    private var end = 0

    /// `ticks` ticks last `seconds` seconds; a 0 in the file counts as 1.
    init(ticks: Int = 1_000, inSeconds seconds: Int = 1) {
        perSecond = Double(max(1, ticks)) / Double(max(1, seconds))
    }

    mutating func add(_ ticks: Int) { self.ticks += Double(max(0, ticks)) }

    /// The milliseconds since the last call, at most those of 32 bits.
    mutating func take() -> Int {
        let now = Int(min(ticks * 1_000 / perSecond, Double(1 << 52)).rounded())
        defer { end = now }
        return min(max(0, now - end), Int(Int32.max))
    }
}
