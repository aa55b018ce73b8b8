/// Why an item failed. One class per failure, stored with the item; no free text decides anything.
public enum FailureClass: Hashable, Sendable {
    case dns, connect, timeout, connectionLost, tlsHandshake, tlsCertificate, tooManyRedirects
    /// A status outside 200–299, stored as `http-404`.
    case http(Int)
    case invalidURL, forbiddenAddress, tooLarge, tooManyPixels, notAnImage, badImage, decoderCrash, truncated
    case transform, delegate, encode
    case notCached, cancelled, denied, optOut
    case diskFull, diskError

    /// Statuses that may go away by themselves.
    static let retriedStatuses: Set<Int> = [408, 425, 429, 500, 502, 503, 504]

    /// What happens to a URL that fails in this way.
    public enum Treatment: Hashable, Sendable {
        /// Tried again, and never blacklisted: the fault may be ours or the network's.
        case retry
        /// Tried again; after the last try the URL is blacklisted for so many milliseconds.
        case retryThenBlacklist(milliseconds: Int64)
        /// Not tried again, and blacklisted for so many milliseconds.
        case blacklist(milliseconds: Int64)
        /// Not tried again, not blacklisted.
        case end
        /// No fault of the item: it goes back to the queue as it was, and the worker pauses.
        case putBack
    }

    static let day: Int64 = 86_400_000

    /// The table of failure classes.
    public var treatment: Treatment {
        switch self {
        case .dns, .connect, .timeout, .connectionLost, .tlsHandshake:
            .retry
        case .http(let status):
            Self.retriedStatuses.contains(status) ? .retry : .blacklist(milliseconds: Self.day)
        case .tlsCertificate, .tooManyRedirects:
            .blacklist(milliseconds: Self.day)
        case .invalidURL, .forbiddenAddress, .tooLarge, .tooManyPixels, .notAnImage, .badImage, .decoderCrash:
            .blacklist(milliseconds: 7 * Self.day)
        case .truncated:
            .retryThenBlacklist(milliseconds: Self.day)
        case .transform, .delegate, .encode, .notCached, .cancelled, .denied, .optOut:
            .end
        case .diskFull, .diskError:
            .putBack
        }
    }

    /// How long the URL stays on the blacklist once the item has ended with this class, in milliseconds.
    public var blacklistDuration: Int64? {
        switch treatment {
        case .blacklist(let milliseconds), .retryThenBlacklist(let milliseconds): milliseconds
        case .retry, .end, .putBack: nil
        }
    }

    /// Whether the origin could not be reached at all.
    public var isUnreachable: Bool {
        switch self {
        case .dns, .connect, .timeout, .connectionLost, .tlsHandshake: true
        default: false
        }
    }
}

extension FailureClass: RawRepresentable, Codable, CustomStringConvertible {
    private static let named: [(name: String, value: FailureClass)] = [
        ("dns", .dns), ("connect", .connect), ("timeout", .timeout), ("connection-lost", .connectionLost),
        ("tls-handshake", .tlsHandshake), ("tls-certificate", .tlsCertificate),
        ("too-many-redirects", .tooManyRedirects), ("invalid-url", .invalidURL),
        ("forbidden-address", .forbiddenAddress), ("too-large", .tooLarge), ("too-many-pixels", .tooManyPixels),
        ("not-an-image", .notAnImage), ("bad-image", .badImage), ("decoder-crash", .decoderCrash),
        ("truncated", .truncated), ("transform", .transform), ("delegate", .delegate), ("encode", .encode),
        ("not-cached", .notCached), ("cancelled", .cancelled), ("denied", .denied), ("opt-out", .optOut),
        ("disk-full", .diskFull), ("disk-error", .diskError),
    ]

    /// Every class that has no number in it; `http-NNN` comes on top.
    public static var allNamed: [FailureClass] { named.map(\.value) }

    /// The class as it is stored and shown: `connection-lost`, `http-404`.
    public var rawValue: String {
        if case .http(let status) = self { return "http-\(status)" }
        return Self.named.first { $0.value == self }?.name ?? "bad-image"
    }

    public init?(rawValue: String) {
        if rawValue.hasPrefix("http-"), let status = Int(rawValue.dropFirst(5)), (100...999).contains(status) {
            self = .http(status)
        } else if let match = Self.named.first(where: { $0.name == rawValue }) {
            self = match.value
        } else {
            return nil
        }
    }

    public var description: String { rawValue }
}
