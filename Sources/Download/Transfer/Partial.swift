import Core

/// An interrupted body, kept so that the next try can resume it (RFC 9110, section 14).
struct Partial {
    /// The URL that sent these bytes, at the end of all redirects.
    let url: String
    /// A strong validator: it identifies the version that the bytes belong to.
    let etag: String
    let writer: BodyWriter
    /// Length of the whole body, if the response announced it.
    let total: Int64?
    var since = ContinuousClock.now
}

/// The properties of a request that must be the same for a later one to resume its body.
struct PartialKey: Hashable {
    let beginning: DownloadURL.Origin
    let url: String
    let headers: [String]
    let allowInvalidCertificates: Bool

    init(_ queued: QueuedTransfer) {
        // The request's own headers are sent only to this scheme, host and port.
        beginning = queued.beginning.origin
        url = queued.url.text
        headers = queued.request.headers.map { "\($0.name.lowercased()): \($0.value)" }.sorted()
        allowInvalidCertificates = queued.request.allowInvalidCertificates
    }
}

/// The bodies that were interrupted last: a few, for a limited time.
struct PartialStore {
    private static let lifetime = Duration.seconds(600)
    private var partials: LRUCache<PartialKey, Partial>

    init(bytes: Int64) { partials = LRUCache(countLimit: 32, costLimit: bytes) }

    var count: Int { partials.count }

    mutating func take(_ key: PartialKey) -> Partial? { partials.remove(key) }

    /// Called regularly, even if nothing is downloaded: each partial body has an open file and reserved disk space.
    mutating func forgetOld(now: ContinuousClock.Instant) {
        partials.removeAll { $0.since <= now - Self.lifetime }
    }

    mutating func keep(_ partial: Partial, _ key: PartialKey) {
        partials.insert(partial, for: key, cost: partial.writer.size)
    }
}

/// The range of a 206, such as `bytes 100-199/200`.
struct ContentRange: Equatable {
    let first: Int64
    let last: Int64
    /// Nil if the length is unknown.
    let total: Int64?

    var length: Int64 { last - first + 1 }

    init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Decimal.parse(ends[0].utf8), let last = Decimal.parse(ends[1].utf8),
            last >= first, last < .max
        else { return nil }
        let total = Decimal.parse(parts[1].utf8)
        guard total != nil || parts[1] == "*", total.map({ $0 > last }) ?? true else { return nil }
        (self.first, self.last, self.total) = (first, last, total)
    }
}

/// The expected length of a body that is assembled from two responses.
struct Assembly {
    /// Where the second response begins.
    let start: Int64
    /// Where the second response ends.
    let end: Int64
    /// Where the whole body ends.
    let total: Int64

    /// Nil if the response does not continue the earlier bytes, or if the end of the body is unknown.
    ///
    /// - Parameter length: the length of the response's own body, if announced.
    init?(_ range: ContentRange, after partial: Partial, length: Int64?) {
        guard range.first == partial.writer.size, let total = range.total ?? partial.total,
            total == partial.total ?? total, range.last < total, length ?? range.length == range.length
        else { return nil }
        (start, end, self.total) = (range.first, range.last + 1, total)
    }
}
