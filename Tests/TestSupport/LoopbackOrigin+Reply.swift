/// What a ``LoopbackOrigin`` does with a request.
public indirect enum LoopbackReply: Sendable {
    case status(Int, headers: [(name: String, value: String)] = [], body: [UInt8] = [])
    /// Announces `of` bytes, sends some of them, then resets the connection (RST).
    case reset(afterBytes: Int, of: Int)
    /// Announces `of` bytes, sends fewer, then closes in good order.
    case closeEarly(afterBytes: Int, of: Int)
    /// A chunked body without Content-Length, made from one buffer; ends early when the client leaves.
    case chunked(totalBytes: Int, startingWith: [UInt8] = [])
    /// Announces `of` bytes, sends these, and goes on as `then` says.
    case partial([UInt8], of: Int, then: Afterwards)
    /// With headers of its own, announces `of` bytes, sends these, and closes in good order.
    case broken([UInt8], of: Int, headers: [(name: String, value: String)])
    /// A chunked body whose last chunk never comes: the connection closes instead.
    case chunkedCut(bytes: Int)
    /// Announces one byte more than it sends, and then sends nothing for as long as the client stays.
    case stall(afterBytes: Int)
    /// Reads the request and says nothing at all for as long as the client stays.
    case silence
    /// A body of `of` bytes, a little at a time.
    case drip(bytesPerSecond: Int, of: Int)
    /// This body, whole, in a number of pieces of the same length with a pause after each.
    case slowly([UInt8], pieces: Int, pause: Int, code: Int = 200, headers: [(name: String, value: String)] = [])
    /// So many bytes of headers, in lines of 1,000 or in a single one.
    case hugeHeaders(bytes: Int, inOneLine: Bool = false)
    case delayed(milliseconds: Int, then: LoopbackReply)
    /// These bytes, head and all; then the connection is closed, or kept.
    case raw(String, body: [UInt8] = [], closes: Bool = true)
    /// A good answer, and after this many milliseconds these bytes without a request.
    case answersTwice([UInt8], late: String, milliseconds: Int)
    /// Bytes that are not HTTP.
    case garbage
    /// Closes without a word.
    case noReply

    /// What comes after the part of a body that was sent.
    public enum Afterwards: Sendable {
        case close, reset, stall
        case drip(bytesPerSecond: Int)
    }

    public static func ok(
        _ body: [UInt8], type: String? = nil, headers: [(name: String, value: String)] = [],
    ) -> LoopbackReply {
        .status(200, headers: (type.map { [("Content-Type", $0)] } ?? []) + headers, body: body)
    }

    public static func redirect(to location: String, code: Int = 302) -> LoopbackReply {
        .status(code, headers: [("Location", location)])
    }
}
