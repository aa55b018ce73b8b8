internal import SystemPackage

/// One request, to be sent once.
struct HTTPRequest: Sendable {
    var method = "GET"
    var url: String
    /// Whole lines.
    var headers: [String] = []
    var body = Body.none
    /// Gets a good answer's body, from its beginning on; nil keeps the body in memory.
    var output: FileDescriptor?
    /// Maximum bytes of a good answer's body; a longer one ends the exchange as ``ExchangeFailure/Kind/tooLarge``.
    var maxBytes: Int64 = 1 << 20
    /// The SHA-256 of a good answer's body in hexadecimal digits; another one is an error.
    var expectedHash: String?
    /// For addresses of the machine itself, which no proxy reaches.
    var avoidsProxy = false
    var timeouts = Timeouts()

    enum Body: Sendable {
        case none
        case bytes([UInt8])
        /// This many bytes from the start of a file; its offset does not matter.
        case file(FileDescriptor, Int64)
    }

    struct Timeouts: Hashable, Sendable {
        /// Maximum milliseconds to connect, including the TLS handshake.
        var connect = 5_000
        /// Idle timeout: seconds below ``slowest`` bytes a second after which the exchange ends.
        var silence = 30
        /// Maximum milliseconds of the whole exchange.
        var whole = 3_600_000

        /// A server that sends fewer bytes a second than this counts as silent.
        static let slowest = 1_024
    }
}

/// Headers hold signatures and tokens, and queries hold them in signed URLs.
extension HTTPRequest: CustomStringConvertible, CustomReflectable {
    var description: String { "\(method) \(url.prefix { $0 != "?" })" }
    var customMirror: Mirror { Mirror(self, children: []) }
}

struct HTTPAnswer: Sendable {
    var status = 0
    /// Names in lowercase; of several with one name, the last.
    var headers: [String: String] = [:]
    /// Empty if the request has an output and the answer is good. An error's body is cut at ``maxErrorBytes``.
    var body: [UInt8] = []
    /// Bytes of the body.
    var size: Int64 = 0

    static let maxErrorBytes = 64 << 10

    var isGood: Bool { (200..<300).contains(status) }
}

/// A body may hold credentials.
extension HTTPAnswer: CustomStringConvertible, CustomReflectable {
    var description: String { "\(status), \(size) bytes" }
    var customMirror: Mirror { Mirror(self, children: []) }
}

/// Why a request got no complete answer.
struct ExchangeFailure: Error, Hashable {
    enum Kind: Hashable {
        /// The same request may succeed later.
        case transient
        /// The server is not who it should be, or TLS can't be set up as it is configured.
        case certificate
        case tooLarge
        /// All bytes came, and they are not those of the hash.
        case wrongBytes
        /// The local file can't be read or written; the error is nil if the file is shorter than announced.
        case file(Errno?)
        case cancelled
        /// The request can't be sent at all.
        case unusable
    }

    let kind: Kind
    /// A clause without a full stop.
    let message: String

    static let cancelled = ExchangeFailure(kind: .cancelled, message: "the task was cancelled")
}
