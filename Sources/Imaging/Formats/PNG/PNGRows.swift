internal import CZlib
import ImageFiles

/// Inflates and unfilters the rows of a PNG's pixels, as far as possible.
///
/// W3C PNG, sections 9 and 10. Not for sharing between threads.
final class PNGRows {
    private let stream: UnsafeMutablePointer<z_stream>
    private var parts: ArraySlice<UnsafeRawBufferPointer>
    private let bitsPerPixel: Int
    /// A row, which begins with the number of its filter.
    private var row: [UInt8] = []
    private var previous: [UInt8] = []

    /// - Parameter parts: the contents of the chunks, in order; they must stay valid.
    init?(_ parts: [UnsafeRawBufferPointer], bitsPerPixel: Int) {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        self.parts = parts[...]
        self.bitsPerPixel = bitsPerPixel
        guard pw_inflate_init(stream) == Z_OK else { return nil }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    /// Begins a picture, or a pass of one, with rows of this many pixels: its first row has none above it.
    func begin(width: Int) {
        let length = 1 + (width * bitsPerPixel + 7) / 8
        row = [UInt8](repeating: 0, count: length)
        previous = row
    }

    /// Lends the next row, without its filter's number.
    ///
    /// - Returns: whether there was one. There is none after a damaged or cut row.
    func next(_ body: (UnsafeRawBufferPointer) -> Void) -> Bool {
        swap(&row, &previous)
        guard row.withUnsafeMutableBytes(fill), unfilter() else {
            parts = []
            stream.pointee.avail_in = 0
            return false
        }
        row.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0.dropFirst())) }
        return true
    }

    /// Skips the next row, with any filter.
    ///
    /// - Returns: whether there was one.
    func skip() -> Bool { row.withUnsafeMutableBytes(fill) }

    private func fill(_ room: UnsafeMutableRawBufferPointer) -> Bool {
        stream.pointee.next_out = room.bindMemory(to: UInt8.self).baseAddress
        stream.pointee.avail_out = UInt32(clamping: room.count)
        while stream.pointee.avail_out > 0 {
            if stream.pointee.avail_in == 0 {
                guard let part = parts.popFirst() else { return false }
                // zlib does not write to it.
                stream.pointee.next_in = UnsafeMutablePointer(
                    mutating: part.bindMemory(to: UInt8.self).baseAddress)
                stream.pointee.avail_in = UInt32(clamping: part.count)
                continue
            }
            guard inflate(stream, Z_NO_FLUSH) == Z_OK else { return stream.pointee.avail_out == 0 }
        }
        return true
    }

    private func unfilter() -> Bool {
        let step = max(1, bitsPerPixel / 8)
        return row.withUnsafeMutableBufferPointer { row in
            previous.withUnsafeBufferPointer { above in
                let filter = row[0]
                for index in 1..<row.count {
                    let left = index > step ? row[index - step] : 0
                    let up = above[index]
                    switch filter {
                    case 0: return true
                    case 1: row[index] &+= left
                    case 2: row[index] &+= up
                    case 3: row[index] &+= UInt8((Int(left) + Int(up)) / 2)
                    case 4: row[index] &+= Self.paeth(left, up, index > step ? above[index - step] : 0)
                    default: return false
                    }
                }
                return true
            }
        }
    }

    /// The Paeth predictor: the neighbour that is nearest to left + up − corner.
    private static func paeth(_ left: UInt8, _ up: UInt8, _ corner: UInt8) -> UInt8 {
        let expected = Int(left) + Int(up) - Int(corner)
        let (toLeft, toUp) = (abs(expected - Int(left)), abs(expected - Int(up)))
        let toCorner = abs(expected - Int(corner))
        if toLeft <= toUp, toLeft <= toCorner { return left }
        return toUp <= toCorner ? up : corner
    }
}
