internal import Core
import SystemPackage

/// Writes an animated GIF: of each frame the rectangle that changes, with a palette of its own where it needs one.
///
/// A frame of up to 256 colours keeps them all exactly. Others are quantised and a little dithered, and what is shown
/// already stays where it is near enough. GIF knows no half-transparent pixels: from an alpha of 128 on they are opaque.
/// A frame waits until the next one has come, which decides what becomes of it.
final class GIFFrameSink: FrameSink {
    private let size: PixelSize
    private let loopCount: Int
    private let writer: GIFWriter
    /// What a viewer sees before the frame that waits.
    private let shown: PixelBuffer
    private let waiting: PixelBuffer
    /// Of the frame that waits, in milliseconds; nil while there is none.
    private var duration: Int?
    private var clock = GIFClock()
    /// The file's palette, which is the first frame's.
    private var common: GIFPalette?
    /// Of the first frame that lost anything: later ones are only what changed.
    private var loss = 0.0
    private let maxColours: Int
    private let metadata: AnimationMetadata

    /// - Parameters:
    ///   - loopCount: 0 is for ever; no more than 65,535 are written.
    ///   - colours: how many a frame may have, 2 to 256.
    ///   - metadata: of which a GIF holds XMP, and in a comment whose picture it is.
    convenience init(
        _ descriptor: FileDescriptor, size: PixelSize, loopCount: Int, colours: Int = ColourTable.maxCount,
        metadata: AnimationMetadata = AnimationMetadata(),
    ) throws(Failure) {
        let writer = try GIFWriter { _ = try descriptor.writeAll($0) }
        try self.init(writer, size: size, loopCount: loopCount, colours: colours, metadata: metadata)
    }

    init(
        _ writer: GIFWriter, size: PixelSize, loopCount: Int, colours: Int, metadata: AnimationMetadata,
    ) throws(Failure) {
        self.writer = writer
        self.size = size
        self.metadata = metadata
        maxColours = colours
        self.loopCount = loopCount
        shown = try PixelBuffer(size)
        waiting = try PixelBuffer(size)
    }

    func add(_ pixels: PixelBuffer, duration: Int) throws(Failure) {
        if self.duration != nil {
            let isCleared = Self.uncovers(pixels, waiting)
            try writeWaiting(isCleared: isCleared)
            if isCleared { shown.clear() }
        }
        Self.threshold(pixels, into: waiting)
        self.duration = duration
    }

    func finish() throws(Failure) {
        guard duration != nil else {
            throw Failure(.encode, "The animation has no frame to write.")
        }
        try writeWaiting(isCleared: false, isLast: true)
        try writer.finish()
    }

    /// Whether something that is shown must become transparent, which no drawing can do.
    private static func uncovers(_ next: PixelBuffer, _ shown: PixelBuffer) -> Bool {
        next.lend { next in
            shown.lend { shown in next.indices.contains { next[$0].alpha < 128 && shown[$0] != Pixel() } }
        }
    }

    private static func threshold(_ source: PixelBuffer, into target: PixelBuffer) {
        source.lend { source in
            target.lend { target in
                for index in target.indices {
                    target[index] = source[index].alpha < 128 ? Pixel() : source[index].opaque
                }
            }
        }
    }

    private func writeWaiting(isCleared: Bool, isLast: Bool = false) throws(Failure) {
        let colours = waiting.lend { ColourTable(of: $0) }?.colours.count ?? .max
        let tolerance = colours > maxColours ? self.tolerance : 0
        let isFirst = common == nil
        let delta = try FrameDelta(
            of: waiting, over: shown, clearing: isCleared, isFirst: isFirst, tolerance: tolerance)
        let indexing = GIFIndexing(delta, common: common, maxColours: maxColours, isLast: isLast)
        if loss == 0 { loss = indexing.loss }
        let palette = indexing.palette
        if isFirst {
            try writer.begin(size, palette.entries, loopCount: loopCount)
            if let comment = metadata.comment { try writer.comment(comment) }
            if !metadata.xmp.isEmpty { try writer.xmp(metadata.xmp) }
            common = palette
        }
        let control = GIFWriter.Control(
            delay: clock.delay(for: duration ?? 0), isCleared: isCleared,
            transparent: delta.isOpaque ? nil : palette.transparent)
        try writer.frame(
            delta.rectangle, isFirst || indexing.isCommon ? nil : palette.entries, control)
        try indexing.rows(over: shown) { (row) throws(Failure) in try writer.row(row) }
    }

    /// How far what is shown may be from a frame of too many colours and stay: drawing it anew would not bring it much
    /// nearer, and what isn't drawn costs nothing. Three to seven of 255 steps, the more the more the palette loses
    /// anyway; found on pans, films with and without noise, and drawings, as the least that makes files no larger than
    /// gifsicle's.
    /// With few colours what is drawn is further off than that, and would be drawn again and again; with fewer than
    /// sixteen so much that half of it may stay for the look of it.
    private var tolerance: Int {
        let usual = min(max(100, 12 * loss - 420), max(500, 4 * loss))
        return Int(maxColours < 16 ? usual + 2 * loss : usual)
    }
}

/// Durations in hundredths of a second, rounded so that their sum stays right.
struct GIFClock {
    /// In milliseconds.
    private var due = 0
    private var written = 0

    /// - Parameter duration: in milliseconds.
    /// - Returns: at least 2: browsers take less for a tenth of a second.
    mutating func delay(for duration: Int) -> Int {
        due += duration
        let delay = min(max(2, (due + 5) / 10 - written), 65_535)
        written += delay
        return delay
    }
}
