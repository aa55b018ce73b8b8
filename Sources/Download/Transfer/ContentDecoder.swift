import CInflate
import Core

/// Decodes a content coding as a body arrives, and checks that the body is complete: libcurl accepts a compressed body
/// that is cut off.
final class ContentDecoder {
    /// The codings that requests accept.
    static let accepted = "gzip, deflate"

    private let isGzip: Bool
    private var stream = z_stream()
    private var phase = Phase.before
    private let output: UnsafeMutableRawBufferPointer
    /// Bytes of decoded output that wait for disk space.
    private var pending = 0
    /// Input bytes that the decoder has consumed already, and that libcurl delivers again after a pause.
    private var used = 0

    private enum Phase {
        case before
        case inside
        /// The coded data has ended, with a correct checksum.
        case after
    }

    /// Nil for bytes without a coding, or with a name that is no coding, such as `utf-8`.
    ///
    /// - Parameter header: the value of `Content-Encoding`.
    init?(_ header: String?) {
        switch Self.codings(header) {
        case ["gzip"], ["x-gzip"]: isGzip = true
        case ["deflate"]: isGzip = false
        default: return nil
        }
        // Allocated last: nothing would free it if this initializer returned nil.
        output = .allocate(byteCount: 64 << 10, alignment: 16)
    }

    /// Whether the bytes have a coding that was not requested.
    static func isUnknown(_ header: String?) -> Bool {
        let codings = codings(header)
        return !codings.isEmpty && ContentDecoder(header) == nil
    }

    /// The codings of a header, without names that are no codings.
    private static func codings(_ header: String?) -> [String] {
        guard let header else { return [] }
        return header.lowercased().split(separator: ",").map {
            String(decoding: Array($0.utf8).trimmingSpaces(), as: UTF8.self)
        }.filter { !["", "identity", "none", "binary", "utf-8", "utf8"].contains($0) }
    }

    deinit {
        if phase != .before { inflateEnd(&stream) }
        output.deallocate()
    }

    /// Whether all coded data has arrived.
    var isWhole: Bool { phase == .after }

    /// - Parameter take: gets the decoded bytes in pieces; a piece at which it pauses is delivered again.
    /// - Returns: whether the transfer continues. After a pause the caller passes the same bytes again; bytes that were
    ///   decoded already are not decoded twice.
    func decode(
        _ bytes: UnsafeRawBufferPointer, from host: String,
        _ take: (UnsafeRawBufferPointer) throws(Failure) -> BodyReceiver.Reception,
    ) throws(Failure) -> BodyReceiver.Reception {
        if pending > 0 {
            let reception = try take(made(pending))
            guard case .goOn = reception else { return reception }
            pending = 0
        }
        let known = min(used, bytes.count)
        used -= known
        var rest = bytes.dropFirst(known)
        while !rest.isEmpty {
            // Gzip members may follow each other; anything else after the end is padding.
            if phase == .after, !isGzip || rest.first != 0x1F { return .goOn }
            try begin(rest, host)
            let (step, result) = inflateOnce(UnsafeRawBufferPointer(rebasing: rest))
            rest = rest.dropFirst(step.taken)
            if result == Z_STREAM_END { phase = .after }
            if let end = try give(step.made, of: bytes.count - rest.count, take) { return end }
            switch result {
            case Z_STREAM_END: continue
            case Z_OK where step.taken + step.made > 0, Z_BUF_ERROR where step.taken + step.made > 0: continue
            default: throw Self.broken(host)
            }
        }
        return try drain(host, bytes.count, take)
    }

    /// Writes the output that the decoder still holds after the last input.
    private func drain(
        _ host: String, _ count: Int,
        _ take: (UnsafeRawBufferPointer) throws(Failure) -> BodyReceiver.Reception,
    ) throws(Failure) -> BodyReceiver.Reception {
        while phase == .inside {
            let (step, result) = inflateOnce(UnsafeRawBufferPointer(start: nil, count: 0))
            if result == Z_STREAM_END { phase = .after }
            if let end = try give(step.made, of: count, take) { return end }
            switch result {
            case Z_STREAM_END: continue
            case Z_OK where step.made > 0: continue
            case Z_OK, Z_BUF_ERROR: return .goOn
            default: throw Self.broken(host)
            }
        }
        return .goOn
    }

    /// Hands over a piece. If `take` pauses, the piece is kept until the bytes come again; `count` of them are consumed
    /// already.
    ///
    /// - Returns: nil if more may follow.
    private func give(
        _ size: Int, of count: Int,
        _ take: (UnsafeRawBufferPointer) throws(Failure) -> BodyReceiver.Reception,
    ) throws(Failure) -> BodyReceiver.Reception? {
        guard size > 0 else { return nil }
        let reception = try take(made(size))
        switch reception {
        case .goOn: return nil
        case .stop: break
        case .pause: (pending, used) = (size, count)
        }
        return reception
    }

    private func begin(_ bytes: Slice<UnsafeRawBufferPointer>, _ host: String) throws(Failure) {
        switch phase {
        case .inside: return
        case .after:
            guard inflateReset(&stream) == Z_OK else { throw Self.broken(host) }
        case .before:
            // Some servers send zlib's format for `deflate`, as the standard requires, and some raw deflate.
            let first = Int(bytes.first ?? 0)
            let isZlib = first & 15 == 8 && first >> 4 <= 7
            guard cinflate_init(&stream, isGzip ? 31 : isZlib ? 15 : -15) == Z_OK else {
                throw Failure.internalFault("There is no memory to unpack the body from \(host).")
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

    private static func broken(_ host: String) -> Failure {
        Failure(.truncated, "The body from \(host) can't be unpacked as its Content-Encoding says.")
    }
}
