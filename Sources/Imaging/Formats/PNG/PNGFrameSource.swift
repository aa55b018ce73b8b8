internal import CVips
internal import Core
import ImageFiles

/// Decodes an animated PNG frame by frame: each becomes a PNG of its own, which libpng decodes, and is drawn on the
/// canvas.
///
/// W3C PNG, third edition, 12.9, describes drawing and disposal.
final class PNGFrameSource: FrameSource {
    let canvas: PixelSize
    let loopCount: Int
    let frameCount: Int

    private let reader: ByteReader
    private let limits: ImageLimits
    private var file: AnimatedPNG
    private let shown: PixelBuffer
    /// The picture before a frame that will be disposed to it; allocated when a frame needs it.
    private var saved: PixelBuffer?
    private var last: AnimatedPNG.Frame?
    /// Whether the decodable part of a damaged frame is delivered as the last frame, instead of an error.
    private let isLenient: Bool
    private var hasEnded = false

    /// - Parameter bytes: must stay valid as long as the source is used.
    /// - Throws: class `too-many-pixels` before any memory sized by the header is allocated.
    init(bytes: UnsafeRawBufferPointer, limits: ImageLimits, isLenient: Bool = false) throws(Failure) {
        guard let facts = AnimationFacts(png: bytes), let file = AnimatedPNG(bytes) else {
            throw Failure(.badImage, "The PNG has no animation.")
        }
        try facts.check(limits)
        reader = ByteReader(bytes)
        self.file = file
        self.limits = limits
        self.isLenient = isLenient
        canvas = facts.canvas
        loopCount = facts.loopCount
        frameCount = facts.frames
        shown = try PixelBuffer(canvas)
    }

    func next() throws(Failure) -> AnimationFrame? {
        guard !hasEnded else { return nil }
        do throws(Failure) {
            guard let frame = try file.next() else { return nil }
            try dispose(before: frame)
            try draw(frame)
            last = frame
            return AnimationFrame(shown, lasting: frame.duration)
        } catch {
            guard isLenient, last != nil else { throw error }
            hasEnded = true
            return nil
        }
    }

    private func dispose(before frame: AnimatedPNG.Frame) throws(Failure) {
        if let last {
            switch last.disposal {
            case .keep: break
            case .clear: shown.clear(last.rectangle)
            case .restore: if let saved { shown.copy(from: saved) } else { shown.clear(last.rectangle) }
            }
        }
        // There is no picture before the first frame, so it is cleared instead.
        guard last != nil, frame.disposal == .restore else { return }
        let copy = if let saved { saved } else { try PixelBuffer(canvas) }
        copy.copy(from: shown)
        saved = copy
    }

    private func draw(_ frame: AnimatedPNG.Frame) throws(Failure) {
        let file = try composed(frame)
        let pixels: PixelBuffer
        do throws(Failure) {
            pixels = try Self.decoded(file, isLenient: false)
        } catch {
            guard isLenient else { throw error }
            pixels = try Self.decoded(file, isLenient: true)
            hasEnded = true
        }
        guard pixels.size == PixelSize(width: frame.rectangle.width, height: frame.rectangle.height) else {
            throw AnimatedPNG.broken("has a frame of another size than its header says")
        }
        shown.draw(pixels, at: frame.rectangle, isBlended: frame.isBlended)
    }

    /// The frame as a file of its own.
    ///
    /// - Throws: class `bad-image` if a checksum is wrong.
    private func composed(_ frame: AnimatedPNG.Frame) throws(Failure) -> [UInt8] {
        guard frame.data.count <= limits.decoderBytes else {
            throw Failure(.tooManyPixels, "A frame of the PNG has \(frame.data.count) bytes.")
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(frame.data.count + 4_096)
        bytes += PNGHeader.signature
        let kind = reader.bytes[(file.header.content.lowerBound + 8)..<file.header.content.upperBound]
        bytes += PNGChunk.bytes(
            "IHDR", PNGChunk.big(frame.rectangle.width, 4) + PNGChunk.big(frame.rectangle.height, 4) + kind)
        for chunk in file.shared { bytes += reader.bytes[(chunk.content.lowerBound - 8)..<chunk.end] }
        let start = bytes.count
        bytes += PNGChunk.big(0, 4) + Array("IDAT".utf8)
        try appendData(of: frame, to: &bytes)
        let length = bytes.count - start - 8
        guard length <= Int32.max else { throw AnimatedPNG.broken("has a frame that is too long") }
        bytes.replaceSubrange(start..<(start + 4), with: PNGChunk.big(length, 4))
        let sum = bytes.withUnsafeBytes {
            PNGChunk.checksum(of: UnsafeRawBufferPointer(rebasing: $0[(start + 4)...]))
        }
        bytes += PNGChunk.big(Int(sum), 4) + PNGChunk.bytes("IEND", [])
        return bytes
    }

    private func appendData(of frame: AnimatedPNG.Frame, to bytes: inout [UInt8]) throws(Failure) {
        var offset = frame.data.lowerBound
        while offset < frame.data.upperBound, let chunk = PNGChunk(at: offset, reader) {
            offset = chunk.end
            guard chunk.name == "IDAT" || chunk.name == "fdAT" else { continue }
            guard chunk.isIntact(reader) else { throw AnimatedPNG.broken("has a frame with a wrong checksum") }
            // The content of later frames begins with a sequence number.
            bytes += reader.bytes[chunk.content.dropFirst(chunk.name == "fdAT" ? 4 : 0)]
        }
    }

    private static func decoded(_ file: [UInt8], isLenient: Bool) throws(Failure) -> PixelBuffer {
        let picture: Picture
        do throws(VipsFailure) {
            let stored = try file.withUnsafeBytes { bytes in
                Result { () throws(VipsFailure) in
                    try Picture(of: bytes, as: PNGFormat(), isLenient: isLenient).inMemory()
                }
            }.get()
            // Of samples of sixteen bits, the upper eight.
            let isDeep = stored.bandFormat != VIPS_FORMAT_UCHAR
            picture = isDeep ? try stored.then { pw_vips_colourspace($0, &$1, VIPS_INTERPRETATION_sRGB) } : stored
        } catch {
            throw error.error(.badImage, "A frame of the PNG cannot be decoded")
        }
        return try picture.pixelBuffer()
    }
}

extension PixelBuffer {
    /// - Parameters:
    ///   - rectangle: the place of the picture, inside this buffer.
    ///   - isBlended: whether this buffer shows through transparent pixels of the picture; if not, they replace the
    ///     buffer's.
    func draw(_ picture: PixelBuffer, at rectangle: PixelRectangle, isBlended: Bool) {
        let width = size.width
        lend { target in
            picture.lend { source in
                for y in 0..<rectangle.height {
                    let from = y * rectangle.width
                    let to = (rectangle.top + y) * width + rectangle.left
                    for x in 0..<rectangle.width {
                        let pixel = source[from + x]
                        target[to + x] = isBlended ? pixel.over(target[to + x]) : pixel
                    }
                }
            }
        }
    }
}

extension Pixel {
    /// Neither is premultiplied with its alpha. W3C PNG, third edition, 13.16.
    @inline(__always)
    func over(_ other: Pixel) -> Pixel {
        if alpha == 255 || other.alpha == 0 { return self }
        if alpha == 0 { return other }
        let (own, rest) = (alpha * 255, (255 - alpha) * other.alpha)
        let sum = own + rest
        func mixed(_ one: Int, _ two: Int) -> UInt8 { UInt8((one * own + two * rest + sum / 2) / sum) }
        return Pixel(
            red: mixed(red, other.red), green: mixed(green, other.green), blue: mixed(blue, other.blue),
            alpha: UInt8((sum + 127) / 255))
    }
}
