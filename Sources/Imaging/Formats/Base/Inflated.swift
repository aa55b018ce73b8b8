internal import CZlib

/// What comes of a zlib stream, counted and thrown away.
struct Inflated {
    /// Bytes, as far as it can be unpacked, and not many more than were allowed.
    let count: Int
    /// It came to its end, and its checksum is right.
    let isWhole: Bool

    /// - Parameters:
    ///   - data: less than 4 GiB, which is the most that zlib takes at once.
    ///   - most: where to stop.
    init(_ data: UnsafeRawBufferPointer, most: Int) {
        var stream = z_stream()
        guard pw_inflate_init(&stream) == Z_OK else {
            (count, isWhole) = (0, false)
            return
        }
        defer { inflateEnd(&stream) }
        // zlib doesn't write to it.
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
