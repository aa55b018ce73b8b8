internal import CInflate
internal import CZstd

/// Unpacks compressed bytes, piece by piece, with bounded memory.
protocol Unpacker: AnyObject {
    /// - Parameter isLast: whether the compressed bytes end here; `bytes` is empty then.
    func unpack(_ bytes: [UInt8], isLast: Bool, _ body: (UnsafeRawBufferPointer) throws -> Void) throws
}

/// Unpacks gzip, also several members after each other (RFC 1952).
final class GzipUnpacker: Unpacker {
    private let name: String
    private let stream: UnsafeMutablePointer<z_stream>
    private var space = [UInt8](repeating: 0, count: ListInput.pieceSize)
    /// Whether a member has begun and not ended.
    private var isOpen = false

    init(_ name: String) throws {
        self.name = name
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        guard cinflate_init(stream, 31) == Z_OK else { throw ListMistake("There is no memory to unpack \(name).") }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    func unpack(_ bytes: [UInt8], isLast: Bool, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        if isLast {
            guard isOpen else { return }
            throw ListMistake("\(name) ends in the middle of its gzip data: it was not copied completely.")
        }
        var input = bytes
        try input.withUnsafeMutableBufferPointer { input in
            stream.pointee.next_in = input.baseAddress
            stream.pointee.avail_in = UInt32(input.count)
            repeat {
                let code = space.withUnsafeMutableBufferPointer { space in
                    stream.pointee.next_out = space.baseAddress
                    stream.pointee.avail_out = UInt32(space.count)
                    isOpen = true
                    return inflate(stream, Z_NO_FLUSH)
                }
                let count = space.count - Int(stream.pointee.avail_out)
                if count > 0 { try space.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[..<count])) } }
                switch code {
                case Z_OK: break
                case Z_BUF_ERROR where stream.pointee.avail_in == 0: return
                case Z_STREAM_END:
                    isOpen = false
                    inflateReset(stream)
                default: throw ListMistake("\(name) is damaged: its gzip data can't be unpacked.")
                }
            } while stream.pointee.avail_in > 0 || stream.pointee.avail_out == 0
        }
    }
}

/// Unpacks Zstandard, also several frames after each other (RFC 8878).
final class ZstdUnpacker: Unpacker {
    private let name: String
    private let stream: OpaquePointer
    private var space = [UInt8](repeating: 0, count: ListInput.pieceSize)
    private var isOpen = false

    init(_ name: String) throws {
        self.name = name
        guard let stream = ZSTD_createDStream() else { throw ListMistake("There is no memory to unpack \(name).") }
        self.stream = stream
        // A window of 64 MiB at most, since the packed data choose it.
        ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, 26)
    }

    deinit { ZSTD_freeDStream(stream) }

    func unpack(_ bytes: [UInt8], isLast: Bool, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        if isLast {
            guard isOpen else { return }
            throw ListMistake("\(name) ends in the middle of its zstd data: it was not copied completely.")
        }
        try bytes.withUnsafeBytes { bytes in
            var input = ZSTD_inBuffer(src: bytes.baseAddress, size: bytes.count, pos: 0)
            var isFull = false
            repeat {
                let (code, count) = space.withUnsafeMutableBytes { space in
                    var output = ZSTD_outBuffer(dst: space.baseAddress, size: space.count, pos: 0)
                    return (ZSTD_decompressStream(stream, &output, &input), output.pos)
                }
                guard ZSTD_isError(code) == 0 else {
                    throw ListMistake("\(name) is damaged: its zstd data can't be unpacked.")
                }
                isOpen = code != 0
                isFull = count == space.count
                if count > 0 { try space.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[..<count])) } }
            } while input.pos < input.size || isFull
        }
    }
}
