import CGIF
internal import Core
import ImageFiles

/// Decodes a GIF frame by frame, composed as in browsers: areas that are disposed to the background become transparent.
final class GIFFrameSource: FrameSource {
    /// The disposal of a frame before the next one is drawn.
    private enum Disposal {
        case keep
        case clear(PixelRectangle)
        case restore
    }

    let canvas: PixelSize
    let loopCount: Int
    let frameCount: Int

    private let reader: GIFReader
    private let shown: PixelBuffer
    /// The picture before a frame that will be disposed to it; allocated when a frame needs it.
    private var saved: PixelBuffer?
    private var disposal = Disposal.keep
    /// Whether the decodable part of a damaged frame is delivered as the last frame, instead of an error.
    private let isLenient: Bool
    private var hasEnded = false
    private var rows = 0
    /// The frame that was drawn last.
    private var drawn: (rectangle: PixelRectangle, isInterlaced: Bool, rows: Int)?

    /// - Parameter bytes: must stay valid as long as the source is used.
    /// - Throws: class `too-many-pixels` before any memory sized by the header is allocated; `truncated` or
    ///   `bad-image` if there is no frame.
    init(bytes: UnsafeRawBufferPointer, limits: ImageLimits, isLenient: Bool = false) throws(Failure) {
        self.isLenient = isLenient
        guard let facts = AnimationFacts(gif: bytes) else {
            throw Failure(.truncated, "The GIF ends within its header.")
        }
        try facts.check(limits)
        guard facts.frames > 0 else {
            throw Failure(facts.endsEarly ? .truncated : .badImage, "The GIF has no frame.")
        }
        reader = try GIFReader(bytes)
        canvas = facts.canvas
        loopCount = facts.loopCount
        frameCount = facts.frames
        shown = try PixelBuffer(canvas)
    }

    func next() throws(Failure) -> AnimationFrame? {
        var control = GraphicsControlBlock(
            DisposalMode: DISPOSAL_UNSPECIFIED, UserInputFlag: false, DelayTime: 0,
            TransparentColor: NO_TRANSPARENT_COLOR)
        while !hasEnded {
            switch reader.record() {
            case .end: return nil
            case .extension:
                do throws(Failure) { control = try reader.graphicControl() ?? control } catch {
                    guard isLenient, rows > 0 else { throw error }
                    hasEnded = true
                }
            case .image:
                dispose()
                do throws(Failure) { try draw(control) } catch {
                    // Without a row of any frame there is nothing to show.
                    guard isLenient, rows > 0 else { throw error }
                    hasEnded = true
                }
                return AnimationFrame(shown, lasting: Int(control.DelayTime) * 10)
            }
        }
        return nil
    }

    /// Fills the missing rows of an interlaced frame that was drawn last with copies of the next row above them, if
    /// rows below them have come.
    ///
    /// - Returns: the number of rows from the top of the canvas that are complete in this way.
    func fillRows() -> Int {
        guard let drawn else { return 0 }
        let part = drawn.rectangle.clipped(to: canvas)
        guard drawn.rows < drawn.rectangle.height else { return canvas.height }
        guard drawn.isInterlaced else { return min(canvas.height, drawn.rectangle.top + drawn.rows) }
        let come = Set(GIFLines(height: drawn.rectangle.height, isInterlaced: true).prefix(drawn.rows))
        shown.lend { pixels in
            for line in 1..<max(1, part.height) where !come.contains(line) {
                let start = (part.top + line) * canvas.width + part.left
                for place in start..<(start + part.width) { pixels[place] = pixels[place - canvas.width] }
            }
        }
        // The first pass has every eighth row.
        return min(canvas.height, part.top + 8 * drawn.rows)
    }

    private func dispose() {
        switch disposal {
        case .keep: break
        case .clear(let rectangle): shown.clear(rectangle)
        case .restore: if let saved { shown.copy(from: saved) }
        }
    }

    private func draw(_ control: GraphicsControlBlock) throws(Failure) {
        let (rectangle, isInterlaced) = try reader.imageHeader()
        disposal = try disposal(control, rectangle)
        guard !rectangle.isEmpty else { return try reader.skipImage() }
        let inks = Self.inks(reader.colours(), transparent: Int(control.TransparentColor))
        let row = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: rectangle.width)
        defer { row.deallocate() }
        drawn = (rectangle, isInterlaced, 0)
        for line in GIFLines(height: rectangle.height, isInterlaced: isInterlaced) {
            try reader.row(into: row)
            rows += 1
            drawn?.rows += 1
            paint(row, at: rectangle.top + line, rectangle, inks)
        }
    }

    /// Saves the shown picture if this frame will be disposed to it.
    private func disposal(
        _ control: GraphicsControlBlock, _ rectangle: PixelRectangle,
    ) throws(Failure) -> Disposal {
        switch control.DisposalMode {
        case DISPOSE_BACKGROUND: return .clear(rectangle)
        // Some encoders write 4 instead of 3, and browsers treat it as 3.
        case DISPOSE_PREVIOUS, 4:
            let copy = if let saved { saved } else { try PixelBuffer(canvas) }
            copy.copy(from: shown)
            saved = copy
            return .restore
        default: return .keep
        }
    }

    /// A colour for each index. Transparent black leaves the shown pixel: the transparent index, and indices without a
    /// colour.
    private static func inks(_ colours: [Pixel], transparent: Int) -> [Pixel] {
        var inks = colours + [Pixel](repeating: Pixel(), count: max(0, 256 - colours.count))
        if inks.indices.contains(transparent) { inks[transparent] = Pixel() }
        return inks
    }

    /// Draws the part of the row that lies on the canvas.
    private func paint(
        _ row: UnsafeMutableBufferPointer<UInt8>, at y: Int, _ rectangle: PixelRectangle, _ inks: [Pixel]
    ) {
        guard y < canvas.height, rectangle.left < canvas.width else { return }
        let count = min(rectangle.width, canvas.width - rectangle.left)
        let start = y * canvas.width + rectangle.left
        shown.lend { pixels in
            inks.withUnsafeBufferPointer { inks in
                for x in 0..<count {
                    let ink = inks[Int(row[x])]
                    if ink != Pixel() { pixels[start + x] = ink }
                }
            }
        }
    }
}

/// The order in which a GIF stores the rows of an image. GIF89a, appendix E.
struct GIFLines: Sequence, IteratorProtocol {
    private let height: Int
    private var passes: ArraySlice<(start: Int, step: Int)>
    private var line: Int

    init(height: Int, isInterlaced: Bool) {
        self.height = height
        passes = isInterlaced ? [(0, 8), (4, 8), (2, 4), (1, 2)] : [(0, 1)]
        line = 0
    }

    mutating func next() -> Int? {
        while let pass = passes.first {
            if line < height {
                defer { line += pass.step }
                return line
            }
            passes = passes.dropFirst()
            line = passes.first?.start ?? 0
        }
        return nil
    }
}
