internal import Core
import ImageFiles

/// Finds the frames of an animated PNG by its chunks, since libpng knows only the default picture.
///
/// W3C PNG, third edition, 4.9 (concepts), 11.3.6 (chunks) and 12.9 (decoders).
struct AnimatedPNG {
    struct Frame {
        /// On the canvas, with at least one pixel.
        let rectangle: PixelRectangle
        /// In milliseconds, as in the file.
        let duration: Int
        let disposal: Disposal
        /// Whether it is drawn over the shown picture, and does not replace it.
        let isBlended: Bool
        /// From its first chunk of pixels to the end of its last.
        let data: Range<Int>
    }

    enum Disposal: UInt8 {
        case keep, clear, restore
    }

    /// The chunks that every frame needs for decoding: colours, transparency, and the meaning of samples.
    let shared: [PNGChunk]
    let header: PNGChunk
    let canvas: PixelSize
    /// As in the file; 0 means for ever.
    let loopCount: Int
    /// The number of frames in the header. Browsers count the frames that are there, so it only shows whether some are
    /// missing.
    let announced: Int
    private var found = 0
    private let reader: ByteReader
    private var offset: Int
    /// The control chunk of the frame whose pixels come next.
    private var control: PNGChunk?
    /// The sequence number of the next chunk that has one.
    private var sequence = 0

    /// Nil for a still. Reads chunks up to the first pixels.
    init?(_ bytes: UnsafeRawBufferPointer) {
        reader = ByteReader(bytes)
        guard let header = PNGChunk(at: PNGHeader.signature.count, reader), header.name == "IHDR",
            header.content.count == 13, let width = reader.big(4, at: header.content.lowerBound),
            let height = reader.big(4, at: header.content.lowerBound + 4)
        else { return nil }
        self.header = header
        canvas = PixelSize(width: width, height: height)
        var shared: [PNGChunk] = []
        var animation: (frames: Int, plays: Int)?
        offset = header.end
        // An incomplete chunk of pixels ends the search.
        while !reader.has("IDAT", at: offset + 4) {
            guard let chunk = PNGChunk(at: offset, reader), chunk.isNamedByLetters else { return nil }
            switch chunk.name {
            case "acTL" where chunk.content.count == 8:
                animation = (chunk.number(0, reader), chunk.number(4, reader))
            case "PLTE", "tRNS", "sBIT", "gAMA", "cHRM", "sRGB": shared.append(chunk)
            case "fcTL" where control == nil: control = chunk
            case "IEND": return nil
            default: break
            }
            offset = chunk.end
        }
        guard let animation, animation.frames > 0 else { return nil }
        self.shared = shared
        (announced, loopCount) = (animation.frames, animation.plays)
    }

    /// - Throws: class `truncated` if the bytes end within the frame or before the last one; `bad-image` if the chunks
    ///   are invalid.
    /// - Returns: nil after the last frame.
    mutating func next() throws(Failure) -> Frame? {
        // The default picture is a frame only if a control chunk stands before it.
        if control == nil { try skipToControl() }
        guard let control else { return nil }
        self.control = nil
        found += 1
        let (rectangle, isDefault) = try rectangle(of: control)
        var data: Range<Int>?
        while let chunk = try chunk() {
            switch chunk.name {
            case "IDAT" where isDefault: break
            case "fdAT" where !isDefault: try checkSequence(of: chunk)
            case "fcTL", "IEND", "IDAT", "fdAT": return try frame(control, rectangle, data, endingWith: chunk)
            default:
                offset = chunk.end
                continue
            }
            data = (data?.lowerBound ?? offset)..<chunk.end
            offset = chunk.end
        }
        // The end mark is missing, as it may be after the last frame.
        return try frame(control, rectangle, data, endingWith: nil)
    }

    private mutating func frame(
        _ control: PNGChunk, _ rectangle: PixelRectangle, _ data: Range<Int>?, endingWith chunk: PNGChunk?,
    ) throws(Failure) -> Frame {
        guard let data else { throw chunk == nil ? Self.cut : Self.broken("has a frame without pixels") }
        let start = control.content.lowerBound
        let (parts, whole) = (reader.big(2, at: start + 20) ?? 0, reader.big(2, at: start + 22) ?? 0)
        guard let disposal = reader.byte(at: start + 24).flatMap(Disposal.init),
            let blend = reader.byte(at: start + 25), blend <= 1
        else { throw Self.broken("has a frame that is drawn in an unknown way") }
        return Frame(
            rectangle: rectangle, duration: parts * 1_000 / (whole == 0 ? 100 : whole), disposal: disposal,
            isBlended: blend == 1, data: data)
    }

    /// The rectangle of the frame, and whether it is the default picture, which fills the canvas.
    private mutating func rectangle(of control: PNGChunk) throws(Failure) -> (PixelRectangle, isDefault: Bool) {
        guard control.content.count == 26, control.isIntact(reader) else {
            throw Self.broken("has a frame whose control is damaged")
        }
        try checkSequence(of: control)
        let numbers = (0..<4).map { control.number(4 + 4 * $0, reader) }
        let rectangle = PixelRectangle(left: numbers[2], top: numbers[3], width: numbers[0], height: numbers[1])
        // Each number has 32 bits.
        guard rectangle.width > 0, rectangle.height > 0, rectangle.columns.upperBound <= canvas.width,
            rectangle.rows.upperBound <= canvas.height
        else { throw Self.broken("has a frame that lies outside its canvas") }
        let isDefault = reader.has("IDAT", at: offset + 4)
        guard !isDefault || PixelSize(width: rectangle.width, height: rectangle.height) == canvas else {
            throw Self.broken("has a first frame that isn't its default picture")
        }
        return (rectangle, isDefault)
    }

    private mutating func skipToControl() throws(Failure) {
        while let chunk = try chunk() {
            switch chunk.name {
            case "IEND": return
            case "fcTL":
                control = chunk
                offset = chunk.end
                return
            default: offset = chunk.end
            }
        }
        if found < announced { throw Self.cut }
    }

    /// - Returns: nil at the end of the bytes.
    private func chunk() throws(Failure) -> PNGChunk? {
        guard offset < reader.count else { return nil }
        guard let chunk = PNGChunk(at: offset, reader) else { throw Self.cut }
        guard chunk.isNamedByLetters else { throw Self.broken("has bytes between its chunks") }
        return chunk
    }

    /// Checks the sequence number, to notice programs that have reordered chunks.
    private mutating func checkSequence(of chunk: PNGChunk) throws(Failure) {
        guard chunk.content.count >= 4, chunk.number(0, reader) == sequence else {
            throw Self.broken("has frames that are out of order")
        }
        sequence += 1
    }

    static let cut = Failure(.truncated, "The PNG ends within or before a frame.")

    static func broken(_ what: String) -> Failure {
        Failure(.badImage, "The animated PNG \(what).")
    }
}

extension AnimationFacts {
    /// Nil for a still.
    init?(png bytes: UnsafeRawBufferPointer) {
        guard var file = AnimatedPNG(bytes) else { return nil }
        self.init(canvas: file.canvas, loopCount: file.loopCount)
        do throws(Failure) {
            while let frame = try file.next() {
                frames += 1
                wholeFrames += 1
                let size = PixelSize(width: frame.rectangle.width, height: frame.rectangle.height)
                let (sum, isTooMuch) = drawnPixels.addingReportingOverflow(size.pixels)
                drawnPixels = isTooMuch ? .max : sum
            }
        } catch {
            // The frame is counted, so that the error is met again and reported when it is drawn.
            endsEarly = error.failureClass == .truncated
            // A file that ends within its first frame counts as an animation too.
            frames = endsEarly ? max(frames + 1, min(2, file.announced)) : frames + 1
        }
    }
}
