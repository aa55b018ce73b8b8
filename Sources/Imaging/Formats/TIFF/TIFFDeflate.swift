internal import Core
import ImageFiles

/// Checks the ends of a TIFF's deflated data: libtiff stops before the checksum, when it has all pixels.
///
/// TIFF 6.0, sections 3 and 15, for strips and tiles. Each of them is a stream of zlib's format, RFC 1950.
struct TIFFDeflate {
    private let reader: ByteReader
    private let directory: TIFFDirectory

    /// Nil for another compression.
    init?(_ reader: ByteReader) {
        directory = TIFFDirectory(reader)
        // Reversed bit order (FillOrder 2) is not checked; no writer is known to use it with Deflate.
        guard let compression = directory.value(of: 259), [8, 32_946].contains(compression),
            directory.value(of: 266) ?? 1 == 1
        else { return nil }
        self.reader = reader
    }

    /// Inflates each strip or tile of the first picture to its end, and drops the result.
    ///
    /// Reads no more bytes than the file has, although parts may overlap.
    var objection: Failure? {
        guard let parts, let offsets = directory.field(324) ?? directory.field(273),
            let lengths = directory.field(325) ?? directory.field(279)
        else { return nil }
        var left = reader.count
        for index in 0..<min(parts.count, offsets.count, lengths.count) {
            // A list that continues after the file's end may have billions of entries.
            guard let offset = directory.value(index, of: offsets), let length = directory.value(index, of: lengths)
            else { return nil }
            guard (1...Int(UInt32.max)).contains(length), reader.contains(offset, length: length) else { continue }
            left -= length
            if left < 0 { return nil }
            let data = UnsafeRawBufferPointer(rebasing: reader.bytes[offset..<(offset + length)])
            // Somewhat more data than the part needs may be padding; far more is damage.
            if !Inflated(data, most: 2 * parts.room).isWhole {
                return Failure(.badImage, "The tiff has damaged deflate data, in part \(index).")
            }
        }
        return nil
    }

    /// Strips or tiles: the number that the picture needs, and the bytes of each.
    private var parts: (count: Int, room: Int)? {
        guard let width = side(256), let height = side(257) else { return nil }
        let samples = directory.value(of: 277) ?? 1
        let isPlanar = directory.value(of: 284) == 2
        let bits = directory.value(of: 258) ?? 1
        guard (1...Self.maxSamples).contains(samples), (1...64).contains(bits) else { return nil }
        let part: (width: Int, height: Int)
        if let across = side(322), let down = side(323) {
            part = (across, down)
        } else {
            part = (width, min(height, max(1, directory.value(of: 278) ?? height)))
        }
        let across = (width + part.width - 1) / part.width
        let down = (height + part.height - 1) / part.height
        let row = (part.width * bits * (isPlanar ? 1 : samples) + 7) / 8
        return (across * down * (isPlanar ? samples : 1), row * part.height)
    }

    /// At most libvips' limit, so that products do not overflow.
    private func side(_ tag: Int) -> Int? {
        directory.value(of: tag).flatMap { (1...10_000_000).contains($0) ? $0 : nil }
    }

    private static let maxSamples = 256
}
