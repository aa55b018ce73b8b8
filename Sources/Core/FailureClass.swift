/// Why an item failed. Each failure has one class, stored with the item; code never decides by the message.
///
/// A class is a case here, a name in ``allNamed`` and a row of the table. Its retries, its time on the blacklist,
/// whether it counts among its host's failures, and its row in docs/reference/failure-classes.md follow from that.
public enum FailureClass: Hashable, Sendable {
    case dns, connect, timeout, connectionLost, tlsHandshake, tlsCertificate, tooManyRedirects
    /// A status outside 200–299, stored as `http-404`.
    case http(Int)
    case invalidURL, forbiddenAddress, tooLarge, tooManyPixels, notAnImage, badImage, decoderCrash, truncated
    case transform, delegate, encode
    case notCached, cancelled, denied, optOut, checksum, filtered, invalidItem
    case refusedByDatabase, workerCrash, diskFull, diskError

    /// What happens to a URL that fails in this way.
    public enum Treatment: Hashable, Sendable {
        /// Tried again, and never blacklisted: the fault may be the worker's or the network's.
        case retry
        /// Tried again; after the last try the URL is blacklisted for this time.
        case retryThenBlacklist(milliseconds: Int64)
        /// Not tried again, and blacklisted for this time.
        case blacklist(milliseconds: Int64)
        /// Not tried again, not blacklisted.
        case end
        /// No fault of the item: it goes back to the queue as it was, and the worker pauses.
        case putBack
    }

    /// Where the fault lies.
    public enum Fault: Hashable, Sendable {
        /// The origin could not be reached at all. Counts among the host's failures.
        case unreachable
        /// The origin's answer. Counts among the host's failures.
        case answer
        /// A setting of this worker refuses the URL; another worker may accept it.
        case setting
        /// The worker, its disk, or the job itself.
        case worker
    }

    public struct Row: Sendable {
        public let failure: FailureClass
        let name: String
        let treatment: Treatment
        let fault: Fault
        /// Half a sentence for docs and help.
        public let meaning: String

        init(_ failure: FailureClass, _ name: String, _ treatment: Treatment, _ fault: Fault, _ meaning: String) {
            self.failure = failure
            self.name = name
            self.treatment = treatment
            self.fault = fault
            self.meaning = meaning
        }
    }

    public static let day: Int64 = 86_400_000
    private static let aDay = Treatment.blacklist(milliseconds: day)
    private static let aWeek = Treatment.blacklist(milliseconds: 7 * day)

    /// Statuses of temporary failures, which are tried again.
    public static let retriedStatuses: Set<Int> = [408, 425, 429, 500, 502, 503, 504]

    /// The table. It is a switch and not a dictionary, since the hash of a class is computed from its name in this
    /// table.
    private var row: Row {
        switch self {
        case .dns: Row(self, "dns", .retry, .unreachable, "the host's name can't be resolved")
        case .connect: Row(self, "connect", .retry, .unreachable, "no connection to the host")
        case .timeout: Row(self, "timeout", .retry, .unreachable, "no answer, or no further byte of it, in time")
        case .connectionLost:
            Row(self, "connection-lost", .retry, .unreachable, "the connection ended before the answer did")
        case .tlsHandshake: Row(self, "tls-handshake", .retry, .unreachable, "the TLS handshake failed")
        case .tlsCertificate:
            Row(self, "tls-certificate", Self.aDay, .answer, "the certificate isn't valid for the host")
        case .tooManyRedirects:
            Row(self, "too-many-redirects", Self.aDay, .setting, "more redirects than allowed, or a redirect loop")
        case .invalidURL:
            Row(self, "invalid-url", Self.aWeek, .answer, "not an absolute URL of a scheme that is fetched")
        case .forbiddenAddress:
            Row(self, "forbidden-address", Self.aWeek, .setting, "the host has an address that isn't allowed")
        case .tooLarge: Row(self, "too-large", Self.aWeek, .setting, "the body is larger than allowed")
        case .tooManyPixels:
            Row(
                self, "too-many-pixels", Self.aWeek, .setting,
                "the picture has more pixels or frames, or needs more memory, than allowed")
        case .notAnImage: Row(self, "not-an-image", Self.aWeek, .answer, "the bytes are of no known image format")
        case .badImage: Row(self, "bad-image", Self.aWeek, .answer, "the picture is damaged")
        case .decoderCrash:
            Row(self, "decoder-crash", Self.aWeek, .worker, "the decoder crashed or took too much time or memory")
        case .truncated:
            Row(
                self, "truncated", .retryThenBlacklist(milliseconds: Self.day), .answer,
                "the body or the picture ends too early")
        case .transform:
            Row(
                self, "transform", .end, .worker,
                "the variant can't be made: an effect failed, or its watermark can't be read")
        case .delegate:
            Row(
                self, "delegate", .end, .worker,
                "a delegate, a transform command, or a transform or loader of the embedding program failed")
        case .encode: Row(self, "encode", .end, .worker, "the variant can't be encoded")
        case .notCached:
            Row(self, "not-cached", .end, .setting, "not in the cache, and the job may not use the network")
        case .cancelled: Row(self, "cancelled", .end, .worker, "the job or the item was cancelled")
        case .denied:
            Row(
                self, "denied", .end, .setting,
                "the delegate refused the URL, or it is a file: or data: URL that isn't allowed")
        case .checksum:
            Row(self, "checksum", .end, .setting, "the body doesn't match the item's sha256 or size")
        case .filtered: Row(self, "filtered", .end, .setting, "the job's filter refuses the picture")
        case .invalidItem: Row(self, "invalid-item", .end, .worker, "the item's own variants or headers can't be used")
        case .refusedByDatabase:
            Row(
                self, "refused-by-database", .end, .worker,
                "the database refuses the item's result, as by a trigger that you added")
        case .optOut: Row(self, "opt-out", .end, .setting, "robots.txt or X-Robots-Tag forbids fetching or using it")
        case .workerCrash:
            Row(self, "worker-crash", Self.aDay, .worker, "three workers died while this was their only item")
        case .diskFull: Row(self, "disk-full", .putBack, .worker, "the cache's disk is full")
        case .diskError: Row(self, "disk-error", .putBack, .worker, "the cache's disk fails")
        case .http(let status):
            Row(
                self, "http-\(status)", Self.retriedStatuses.contains(status) ? .retry : Self.aDay, .answer,
                "the origin answered \(status)")
        }
    }

    /// Every class without a number; `http-NNN` is not in this list.
    public static let allNamed: [FailureClass] = [
        .dns, .connect, .timeout, .connectionLost, .tlsHandshake, .tlsCertificate, .tooManyRedirects, .invalidURL,
        .forbiddenAddress, .tooLarge, .tooManyPixels, .notAnImage, .badImage, .decoderCrash, .truncated, .transform,
        .delegate, .encode, .notCached, .cancelled, .denied, .optOut, .checksum, .filtered, .invalidItem,
        .refusedByDatabase, .workerCrash, .diskFull, .diskError,
    ]

    /// The rows of ``allNamed``.
    public static let table = allNamed.map(\.row)

    private static let byName = Dictionary(uniqueKeysWithValues: table.map { ($0.name, $0.failure) })

    public var treatment: Treatment { row.treatment }

    /// How long the URL stays on the blacklist once the item has ended with this class, in milliseconds.
    public var blacklistDuration: Int64? {
        switch treatment {
        case .blacklist(let milliseconds), .retryThenBlacklist(let milliseconds): milliseconds
        case .retry, .end, .putBack: nil
        }
    }

    /// Whether the class counts among the failures of its host.
    public var isOfHost: Bool { row.fault == .answer || isUnreachable }

    /// Whether the origin could not be reached at all.
    public var isUnreachable: Bool { row.fault == .unreachable }
}

extension FailureClass: RawRepresentable, Codable, CustomStringConvertible {
    /// The class as it is stored and shown: `connection-lost`, `http-404`.
    public var rawValue: String { row.name }

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

extension FailureClass {
    /// Whether the class describes the picture, the URL or the job, and not the disk or a worker that stops.
    public var isOfItem: Bool { self != .cancelled && treatment != .putBack }

    /// Whether a request with other credentials may get another answer.
    public var dependsOnCredentials: Bool {
        if case .http(let status) = self { [401, 403, 407].contains(status) } else { false }
    }

    /// Whether a stale source may replace the failure (stale-if-error; RFC 9111, section 4.2.4, and RFC 5861): no
    /// answer, one of 500, 502, 503 and 504, or a truncated body.
    public var allowsStaleSource: Bool {
        switch self {
        case .http(let status): [500, 502, 503, 504].contains(status)
        case .truncated: true
        default: isUnreachable
        }
    }
}
