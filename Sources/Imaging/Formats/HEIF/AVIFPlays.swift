internal import CAVIF
import ImageFiles

/// The boxes before the pixels of an animated AVIF, changed so that the file says how often it plays and no longer when
/// it was made.
///
/// libavif 0.11 writes no edit list, and it writes the time into every track, which would make two files of the same
/// frames different. ISO/IEC 14496-12, 8.6.6, and libavif 1.0's own files: the edit list covers all frames once and is
/// repeated until the track's duration is over.
struct AVIFPlays {
    /// The bytes that replace the file's first ``length`` bytes.
    private(set) var bytes: [UInt8]
    /// The offset of the pixels' box in the file.
    let length: Int

    /// Bytes of the box with the edit list.
    private static let listLength = 44

    /// Nil if the boxes are not those that libavif writes.
    ///
    /// - Parameter count: how often it plays; 0 means for ever.
    init?(_ file: UnsafeRawBufferPointer, count: Int) {
        let reader = ByteReader(file)
        guard let data = Boxes.box("mdat", in: 0..<file.count, reader),
            let movie = Boxes.box("moov", in: 0..<file.count, reader), movie.upperBound <= data.lowerBound
        else { return nil }
        length = data.lowerBound - 8
        bytes = Array(file[..<length])
        let tracks = Self.tracks(movie, reader)
        guard !tracks.isEmpty, clearTimes(movie, tracks, reader) else { return nil }
        // The lists are there, for as many repetitions as the encoder was given.
        if pw_avif_writes_lists() != 0 { return }
        guard setDurations(movie, tracks, count, reader),
            move(by: tracks.count * Self.listLength, movie, tracks, reader),
            insertLists(movie, tracks, reader)
        else { return nil }
    }

    private static func tracks(_ movie: Range<Int>, _ reader: ByteReader) -> [Range<Int>] {
        var tracks: [Range<Int>] = []
        Boxes.each(in: movie, reader) { offset, content in
            if reader.has("trak", at: offset) { tracks.append(content) }
            return true
        }
        return tracks
    }

    /// The headers of the movie, of its tracks and of their media begin with the time, twice.
    private mutating func clearTimes(_ movie: Range<Int>, _ tracks: [Range<Int>], _ reader: ByteReader) -> Bool {
        var headers = [Boxes.box("mvhd", in: movie, reader)]
        for track in tracks {
            headers.append(Boxes.box("tkhd", in: track, reader))
            headers.append(Boxes.box("mdia", in: track, reader).flatMap { Boxes.box("mdhd", in: $0, reader) })
        }
        for header in headers {
            guard let header, header.count >= 36, reader.byte(at: header.lowerBound) == 1 else { return false }
            put([UInt8](repeating: 0, count: 16), at: header.lowerBound + 4)
        }
        return true
    }

    private mutating func setDurations(
        _ movie: Range<Int>, _ tracks: [Range<Int>], _ count: Int, _ reader: ByteReader,
    ) -> Bool {
        guard let header = Boxes.box("mvhd", in: movie, reader),
            let once = reader.big(8, at: header.lowerBound + 24)
        else { return false }
        let (all, overflow) = once.multipliedReportingOverflow(by: max(1, count))
        // All bits set mean that it plays for ever.
        let duration = count == 0 || overflow ? [UInt8](repeating: 0xFF, count: 8) : Self.big(all, 8)
        put(duration, at: header.lowerBound + 24)
        for track in tracks {
            guard let header = Boxes.box("tkhd", in: track, reader) else { return false }
            put(duration, at: header.lowerBound + 28)
        }
        return true
    }

    /// Increases the offsets of all data after the boxes that grow.
    private mutating func move(
        by distance: Int, _ movie: Range<Int>, _ tracks: [Range<Int>], _ reader: ByteReader,
    ) -> Bool {
        for track in tracks {
            guard let media = Boxes.box("mdia", in: track, reader),
                let information = Boxes.box("minf", in: media, reader),
                let samples = Boxes.box("stbl", in: information, reader),
                let chunks = Boxes.box("stco", in: samples, reader),
                let count = reader.big(4, at: chunks.lowerBound + 4), chunks.count >= 8 + 4 * count
            else { return false }
            for index in 0..<count { add(distance, 4, at: chunks.lowerBound + 8 + 4 * index, reader) }
        }
        // Tracks have items of their own: their EXIF and XMP.
        let items = [HEIFItems(reader)] + tracks.map { HEIFItems(in: $0, reader) }
        for place in items.flatMap({ $0?.placesOfData ?? [] }) {
            add(distance, place.count, at: place.lowerBound, reader)
        }
        return true
    }

    /// From the last to the first, so that the offsets before them stay.
    private mutating func insertLists(_ movie: Range<Int>, _ tracks: [Range<Int>], _ reader: ByteReader) -> Bool {
        for track in tracks.reversed() {
            guard let header = Boxes.box("tkhd", in: track, reader),
                let media = Boxes.box("mdia", in: track, reader),
                let time = Boxes.box("mdhd", in: media, reader), let once = reader.big(8, at: time.lowerBound + 24)
            else { return false }
            // Version 1, flag 1, one entry: its duration, from the first frame on, at the usual speed.
            let list = [1, 0, 0, 1] + Self.big(1, 4) + Self.big(once, 8) + Self.big(0, 8) + [0, 1, 0, 0]
            add(Self.listLength, 4, at: track.lowerBound - 8, reader)
            bytes.insert(contentsOf: Self.box("edts", Self.box("elst", list)), at: header.upperBound)
        }
        add(tracks.count * Self.listLength, 4, at: movie.lowerBound - 8, reader)
        return true
    }

    /// Overwrites copied bytes; an offset after them changes nothing.
    private mutating func put(_ new: [UInt8], at offset: Int) {
        guard offset + new.count <= bytes.count else { return }
        bytes.replaceSubrange(offset..<(offset + new.count), with: new)
    }

    private mutating func add(_ distance: Int, _ length: Int, at offset: Int, _ reader: ByteReader) {
        guard let old = reader.big(length, at: offset) else { return }
        put(Self.big(old &+ distance, length), at: offset)
    }

    private static func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
        big(8 + content.count, 4) + Array(name.utf8) + content
    }

    private static func big(_ number: Int, _ length: Int) -> [UInt8] {
        (0..<length).map { UInt8(truncatingIfNeeded: number >> (8 * (length - 1 - $0))) }
    }
}
