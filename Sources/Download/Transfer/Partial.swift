import Core

/// A body that broke off, kept so that the next try can go on where it ended (RFC 9110, section 14).
struct Partial {
    /// Whose bytes these are, at the end of all redirects.
    let url: String
    /// A strong validator: the bytes are those of this version and no other.
    let etag: String
    let writer: BodyWriter
    /// Bytes of the whole body, where that was said.
    let total: Int64?
    var since = ContinuousClock.now
}

/// All that has to be the same for a later request to resume a body.
struct PartialKey: Hashable {
    let beginning: DownloadURL.Origin
    let url: String
    let headers: [String]
    let allowInvalidCertificates: Bool

    init(_ queued: QueuedTransfer) {
        // It decides whether the headers are sent.
        beginning = queued.beginning.origin
        url = queued.url.text
        headers = queued.request.headers.map { "\($0.name.lowercased()): \($0.value)" }.sorted()
        allowInvalidCertificates = queued.request.allowInvalidCertificates
    }
}

/// Bodies that broke off lately: a few, and not for long.
struct PartialStore {
    private static let lifetime = Duration.seconds(600)
    private var partials: LRUCache<PartialKey, Partial>

    init(bytes: Int64) { partials = LRUCache(countLimit: 32, costLimit: bytes) }

    var count: Int { partials.count }

    mutating func take(_ key: PartialKey) -> Partial? { partials.remove(key) }

    /// Asked for again and again, also where nothing is downloaded: each has an open file and its room on the disk.
    mutating func forgetOld(now: ContinuousClock.Instant) {
        partials.removeAll { $0.since <= now - Self.lifetime }
    }

    mutating func keep(_ partial: Partial, _ key: PartialKey) {
        partials.insert(partial, for: key, cost: partial.writer.size)
    }
}

/// `bytes 100-199/200`, of a 206.
struct ContentRange: Equatable {
    let first: Int64
    let last: Int64
    /// Nil for a length that is not known.
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

/// How long a body has to be that is put together from two responses.
struct Assembly {
    /// Where the second response begins.
    let start: Int64
    /// Where the second response ends.
    let end: Int64
    /// Where the body does.
    let total: Int64

    /// Nil where the response doesn't go on from the earlier bytes, or the end of the body is unknown.
    ///
    /// - Parameter length: of the response's own body, where it says so.
    init?(_ range: ContentRange, after partial: Partial, length: Int64?) {
        guard range.first == partial.writer.size, let total = range.total ?? partial.total,
            total == partial.total ?? total, range.last < total, length ?? range.length == range.length
        else { return nil }
        (start, end, self.total) = (range.first, range.last + 1, total)
    }
}
