internal import Core
import ImageFiles

/// The moving part of an AVIF, as its boxes describe it: the number of frames, their size, and how often they play.
///
/// ISO/IEC 14496-12 for the boxes, https://aomediacodec.github.io/av1-avif/#image-sequences. libavif 0.11 does not report
/// how often a sequence plays, and by these numbers the limits are checked before it allocates memory.
struct AVIFTrack {
    /// As stored.
    let canvas: PixelSize
    let frames: Int
    /// How often it plays; 0 means for ever, also if the file does not say: browsers and libavif's tools do the same.
    let loopCount: Int
    /// 1 to 8, as EXIF's.
    let orientation: Int

    /// Nil for a still: without the brand of sequences browsers show the default picture, even if there is a track.
    init?(_ reader: ByteReader) {
        guard let type = FileTypeBox(reader), type.major == "avis",
            let movie = Boxes.box("moov", in: 0..<reader.count, reader)
        else { return nil }
        var found: AVIFTrack?
        Boxes.each(in: movie, reader) { offset, content in
            if reader.has("trak", at: offset) { found = AVIFTrack(track: content, reader) }
            return found == nil
        }
        guard let found else { return nil }
        self = found
    }

    /// The first track of pictures; others have the alpha.
    private init?(track: Range<Int>, _ reader: ByteReader) {
        guard let header = Boxes.box("tkhd", in: track, reader), let media = Boxes.box("mdia", in: track, reader),
            let handler = Boxes.box("hdlr", in: media, reader), reader.has("pict", at: handler.lowerBound + 8),
            let information = Boxes.box("minf", in: media, reader),
            let samples = Boxes.box("stbl", in: information, reader),
            let sizes = Boxes.box("stsz", in: samples, reader), sizes.count >= 12,
            let count = reader.big(4, at: sizes.lowerBound + 8), count > 0
        else { return nil }
        let isLong = reader.byte(at: header.lowerBound) == 1
        // Width and height come last, in 65,536ths.
        let place = header.lowerBound + (isLong ? 88 : 76)
        guard place + 8 <= header.upperBound, let width = reader.big(2, at: place),
            let height = reader.big(2, at: place + 4)
        else { return nil }
        canvas = PixelSize(width: width, height: height)
        frames = count
        loopCount = Self.loopCount(track, lasting: Self.duration(header, isLong, reader), reader)
        orientation = Self.orientation(samples, reader)
    }

    /// Nil if it has no end.
    private static func duration(_ header: Range<Int>, _ isLong: Bool, _ reader: ByteReader) -> Int? {
        guard isLong else {
            return reader.big(4, at: header.lowerBound + 20).flatMap { $0 == Int(UInt32.max) ? nil : $0 }
        }
        // All bits set means no end. That number does not fit an Int, so the result is nil.
        return reader.big(8, at: header.lowerBound + 28)
    }

    /// ISO/IEC 14496-12, 8.6.6: an edit list with the flag 1 is repeated until the track's duration is over.
    private static func loopCount(_ track: Range<Int>, lasting duration: Int?, _ reader: ByteReader) -> Int {
        guard let edits = Boxes.box("edts", in: track, reader), let list = Boxes.box("elst", in: edits, reader),
            let version = reader.byte(at: list.lowerBound), let flags = reader.byte(at: list.lowerBound + 3)
        else { return 0 }
        guard flags & 1 == 1 else { return 1 }
        let start = list.lowerBound + 8
        guard let duration, let part = reader.big(version == 1 ? 8 : 4, at: start), part > 0 else { return 0 }
        // Rounded up, since a part of a repetition counts.
        let (count, rest) = duration.quotientAndRemainder(dividingBy: part)
        return min(max(1, count + (rest > 0 ? 1 : 0)), 65_535)
    }

    /// ISO/IEC 23008-12, 6.5.10 and 6.5.12: first turned, counter-clockwise, and then mirrored.
    private static func orientation(_ samples: Range<Int>, _ reader: ByteReader) -> Int {
        // A full box with a number of entries; then a description of a picture, whose own boxes come after 78 bytes.
        guard let descriptions = Boxes.box("stsd", in: samples, reader),
            let entry = Boxes.box(
                "av01", in: min(descriptions.lowerBound + 8, descriptions.upperBound)..<descriptions.upperBound, reader)
        else { return 1 }
        let parts = min(entry.lowerBound + 78, entry.upperBound)..<entry.upperBound
        let turn = Boxes.box("irot", in: parts, reader).flatMap { reader.byte(at: $0.lowerBound) } ?? 0
        let mirror = Boxes.box("imir", in: parts, reader).flatMap { reader.byte(at: $0.lowerBound) }
        let orientations: [Int] =
            switch mirror.map({ $0 & 1 }) {
            case nil: [1, 8, 3, 6]
            // Top and bottom change places.
            case 0?: [4, 5, 2, 7]
            default: [2, 7, 4, 5]
            }
        return orientations[Int(turn & 3)]
    }
}

extension AnimationFacts {
    /// Nil for a still.
    init?(avif bytes: UnsafeRawBufferPointer) {
        let reader = ByteReader(bytes)
        guard let track = AVIFTrack(reader) else { return nil }
        let canvas = track.orientation >= 5 ? track.canvas.transposed : track.canvas
        self.init(
            canvas: canvas, frames: track.frames, loopCount: track.loopCount, endsEarly: Boxes.endEarly(reader))
    }
}
