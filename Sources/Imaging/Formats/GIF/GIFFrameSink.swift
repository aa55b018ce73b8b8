internal import Core
import ImageFiles
import SystemPackage

/// Writes an animated GIF: the rectangle of each frame that changes, with its own palette if it needs one.
///
/// A frame of up to 256 colours keeps them exactly. Other frames are quantised and slightly dithered, and shown pixels
/// stay if they are near enough. GIF has no half-transparent pixels: from an alpha of 128 on they become opaque. A
/// frame is held until the next one comes, which decides its disposal.
final class GIFFrameSink: FrameSink {
    private let size: PixelSize
    private let loopCount: Int
    private let writer: GIFWriter
    /// The picture that a viewer shows before the held frame.
    private let shown: PixelBuffer
    private let waiting: PixelBuffer
    /// The held frame's duration, in milliseconds; nil if no frame is held.
    private var duration: Int?
    private var clock = GIFClock()
    /// The file's palette, which is the first frame's.
    private var common: GIFPalette?
    /// The loss of the first frame that lost anything; later frames contain only changes.
    private var loss = 0.0
    private let maxColours: Int
    private let metadata: AnimationMetadata

    /// - Parameters:
    ///   - loopCount: how often it plays; 0 means for ever, and at most 65,536 is written.
    ///   - colours: maximum colours of a frame, 2 to 256.
    ///   - metadata: a GIF stores XMP, and Artist and Copyright as a comment.
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

    /// Whether a shown pixel must become transparent, which drawing cannot do.
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

    /// The distance up to which a shown pixel stays in a frame of too many colours. Drawing it again would bring
    /// little, and pixels that are not drawn cost nothing. It is three to seven of 255 steps, and grows with the
    /// palette's own loss. Found on pans, films with and without noise, and drawings, as the smallest tolerance with
    /// files no larger than gifsicle's. With few colours the drawn pixels themselves are further off, and would be
    /// drawn again and again. With fewer than sixteen colours twice the loss is added, since that looks better.
    private var tolerance: Int {
        let usual = min(max(100, 12 * loss - 420), max(500, 4 * loss))
        return Int(maxColours < 16 ? usual + 2 * loss : usual)
    }
}

/// Converts durations to hundredths of a second, rounded so that their sum stays right.
struct GIFClock {
    /// In milliseconds.
    private var due = 0
    private var written = 0

    /// - Parameter duration: in milliseconds.
    /// - Returns: at least 2, since browsers show less as a tenth of a second.
    mutating func delay(for duration: Int) -> Int {
        due += duration
        let delay = min(max(2, (due + 5) / 10 - written), 65_535)
        written += delay
        return delay
    }
}
