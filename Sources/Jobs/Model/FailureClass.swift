/// Why an item failed. One class per failure, stored with the item; no free text decides anything.
public enum FailureClass: Hashable, Sendable {
    case dns, connect, timeout, connectionLost, tlsHandshake, tlsCertificate, tooManyRedirects
    /// A status outside 200–299, stored as `http-404`.
    case http(Int)
    case invalidURL, forbiddenAddress, tooLarge, tooManyPixels, notAnImage, badImage, decoderCrash, truncated
    case transform, delegate, encode
    case notCached, cancelled, denied, optOut
    /// Three workers died while the item was the only one they held.
    case workerCrash
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
        case .tlsCertificate, .tooManyRedirects, .workerCrash:
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

    /// Whether a setting of ours refuses what another may take; no fault of the URL's or its host's.
    public var isOwnRefusal: Bool {
        switch self {
        case .forbiddenAddress, .tooLarge, .tooManyPixels, .denied, .optOut, .notCached: true
        default: false
        }
    }

    /// Whether it is a failure of the host, which is what hosts are judged by.
    public var isOfHost: Bool {
        switch self {
        case .transform, .delegate, .encode, .cancelled, .diskFull, .diskError, .decoderCrash, .workerCrash: false
        default: !isOwnRefusal
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
    /// Every class that has no number in it; `http-NNN` comes on top.
    public static let allNamed: [FailureClass] = [
        .dns, .connect, .timeout, .connectionLost, .tlsHandshake, .tlsCertificate, .tooManyRedirects, .invalidURL,
        .forbiddenAddress, .tooLarge, .tooManyPixels, .notAnImage, .badImage, .decoderCrash, .truncated, .transform,
        .delegate, .encode, .notCached, .cancelled, .denied, .optOut, .workerCrash, .diskFull, .diskError,
    ]

    private static let byName = Dictionary(uniqueKeysWithValues: allNamed.map { ($0.rawValue, $0) })

    /// The class as it is stored and shown: `connection-lost`, `http-404`.
    public var rawValue: String {
        switch self {
        case .dns: "dns"
        case .connect: "connect"
        case .timeout: "timeout"
        case .connectionLost: "connection-lost"
        case .tlsHandshake: "tls-handshake"
        case .tlsCertificate: "tls-certificate"
        case .tooManyRedirects: "too-many-redirects"
        case .http(let status): "http-\(status)"
        case .invalidURL: "invalid-url"
        case .forbiddenAddress: "forbidden-address"
        case .tooLarge: "too-large"
        case .tooManyPixels: "too-many-pixels"
        case .notAnImage: "not-an-image"
        case .badImage: "bad-image"
        case .decoderCrash: "decoder-crash"
        case .truncated: "truncated"
        case .transform: "transform"
        case .delegate: "delegate"
        case .encode: "encode"
        case .notCached: "not-cached"
        case .cancelled: "cancelled"
        case .denied: "denied"
        case .optOut: "opt-out"
        case .workerCrash: "worker-crash"
        case .diskFull: "disk-full"
        case .diskError: "disk-error"
        }
    }

    public init?(rawValue: String) {
        if rawValue.hasPrefix("http-"), let status = Int(rawValue.dropFirst(5)), (100...999).contains(status) {
            self = .http(status)
        } else if let match = Self.byName[rawValue] {
            self = match
        } else {
            return nil
        }
    }

    public var description: String { rawValue }
}
