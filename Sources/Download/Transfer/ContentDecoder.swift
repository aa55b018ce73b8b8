import CInflate

/// Undoes a content coding as a body arrives, and knows whether all of it has come: libcurl takes a compressed body that
/// breaks off for a whole one.
final class ContentDecoder {
    /// What we ask for.
    static let accepted = "gzip, deflate"

    private let isGzip: Bool
    private var stream = z_stream()
    private var phase = Phase.before
    private let output = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)

    private enum Phase {
        case before
        case inside
        /// The end of the coded bytes has come, and its checksum was right.
        case after
    }

    /// Nil where the bytes are as they are meant: without a coding, or with what is none, such as `utf-8`.
    ///
    /// - Parameter header: the value of `Content-Encoding`.
    init?(_ header: String?) {
        switch Self.codings(header) {
        case ["gzip"], ["x-gzip"]: isGzip = true
        case ["deflate"]: isGzip = false
        default: return nil
        }
    }

    /// Whether the bytes are packed in a way that nobody has asked for.
    static func isUnknown(_ header: String?) -> Bool {
        let codings = codings(header)
        return !codings.isEmpty && ContentDecoder(header) == nil
    }

    /// Without what is none.
    private static func codings(_ header: String?) -> [String] {
        (header ?? "").lowercased().split(separator: ",").map {
            String(decoding: Array($0.utf8).trimmingSpaces(), as: UTF8.self)
        }.filter { !["", "identity", "none", "binary", "utf-8", "utf8"].contains($0) }
    }

    deinit {
        if phase != .before { inflateEnd(&stream) }
        output.deallocate()
    }

    /// Whether all has come that was coded.
    var isWhole: Bool { phase == .after }

    /// - Parameter take: gets what comes of the bytes, in pieces; says whether it wants more.
    /// - Returns: whether more is wanted.
    func decode(
        _ bytes: UnsafeRawBufferPointer, from host: String,
        _ take: (UnsafeRawBufferPointer) throws(DownloadFailure) -> Bool,
    ) throws(DownloadFailure) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            // Gzip's members follow each other; what else follows is padding.
            if phase == .after, !isGzip || rest.first != 0x1F { return true }
            try begin(rest, host)
            let (used, result) = inflateOnce(UnsafeRawBufferPointer(rebasing: rest))
            rest = rest.dropFirst(used.taken)
            if used.made > 0, try !take(made(used.made)) { return false }
            switch result {
            case Z_STREAM_END: phase = .after
            case Z_OK where used.taken + used.made > 0, Z_BUF_ERROR where used.taken + used.made > 0: continue
            default: throw Self.broken(host)
            }
        }
        return try drain(host, take)
    }

    /// What the decoder still holds though it has all bytes.
    private func drain(
        _ host: String, _ take: (UnsafeRawBufferPointer) throws(DownloadFailure) -> Bool,
    ) throws(DownloadFailure) -> Bool {
        while phase == .inside {
            let (used, result) = inflateOnce(UnsafeRawBufferPointer(start: nil, count: 0))
            if used.made > 0, try !take(made(used.made)) { return false }
            switch result {
            case Z_STREAM_END: phase = .after
            case Z_OK where used.made > 0: continue
            case Z_OK, Z_BUF_ERROR: return true
            default: throw Self.broken(host)
            }
        }
        return true
    }

    private func begin(_ bytes: Slice<UnsafeRawBufferPointer>, _ host: String) throws(DownloadFailure) {
        switch phase {
        case .inside: return
        case .after:
            guard inflateReset(&stream) == Z_OK else { throw Self.broken(host) }
        case .before:
            // Some send zlib's format for `deflate`, as the standard has it, and some the bare one.
            let first = Int(bytes.first ?? 0)
            let isZlib = first & 15 == 8 && first >> 4 <= 7
            guard cinflate_init(&stream, isGzip ? 31 : isZlib ? 15 : -15) == Z_OK else {
                throw DownloadFailure(.internalError, "There is no memory to unpack the body from \(host).")
            }
        }
        phase = .inside
    }

    private func made(_ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(output).prefix(count))
    }

    private func inflateOnce(_ bytes: UnsafeRawBufferPointer) -> ((taken: Int, made: Int), CInt) {
        // zlib doesn't write to its input.
        stream.next_in = UnsafeMutablePointer(mutating: bytes.bindMemory(to: UInt8.self).baseAddress)
        stream.avail_in = UInt32(clamping: bytes.count)
        stream.next_out = output.bindMemory(to: UInt8.self).baseAddress
        stream.avail_out = UInt32(clamping: output.count)
        let given = Int(stream.avail_in)
        let result = inflate(&stream, Z_NO_FLUSH)
        return ((given - Int(stream.avail_in), output.count - Int(stream.avail_out)), result)
    }

    private static func broken(_ host: String) -> DownloadFailure {
        DownloadFailure(.truncated, "The body from \(host) can't be unpacked as its Content-Encoding says.")
    }
}
