internal import CZlib
import ImageFiles

/// The result of inflating a zlib stream: its bytes are counted and dropped.
struct Inflated {
    /// Bytes that could be inflated, up to slightly more than the maximum.
    let count: Int
    /// Whether the stream is complete, with a correct checksum.
    let isWhole: Bool

    /// - Parameters:
    ///   - data: less than 4 GiB, which is zlib's limit for one call.
    ///   - most: the maximum, at which it stops.
    init(_ data: UnsafeRawBufferPointer, most: Int) {
        var stream = z_stream()
        guard pw_inflate_init(&stream) == Z_OK else {
            (count, isWhole) = (0, false)
            return
        }
        defer { inflateEnd(&stream) }
        // zlib does not write to it.
        stream.next_in = UnsafeMutablePointer(mutating: data.bindMemory(to: UInt8.self).baseAddress)
        stream.avail_in = UInt32(clamping: data.count)
        let result = withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 1) { room in
            var result = Z_OK
            while result == Z_OK, Int(stream.total_out) <= most {
                stream.next_out = room.bindMemory(to: UInt8.self).baseAddress
                stream.avail_out = UInt32(room.count)
                result = inflate(&stream, Z_NO_FLUSH)
            }
            return result
        }
        count = Int(stream.total_out)
        isWhole = result == Z_STREAM_END
    }
}
