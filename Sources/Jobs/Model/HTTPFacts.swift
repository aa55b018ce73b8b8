public import Core
internal import FoundationEssentials

/// The headers of a source's response that determine its freshness. Stored as text in `sources.http`.
public struct HTTPFacts: Hashable, Sendable, Codable {
    public var cacheControl: String?
    public var expires: String?
    public var date: String?
    public var age: String?
    public var vary: String?
    /// Hashes of the request's credentials and of its headers that `vary` names.
    public var varied: String?
    /// When the request was sent and when the response arrived.
    public var askedAt: WallTime
    public var answeredAt: WallTime
    /// The number of redirects; nil for none. Their freshness is not stored.
    public var redirects: Int?
    /// The response's status; nil for 200.
    public var status: Int?

    public init(
        cacheControl: String? = nil, expires: String? = nil, date: String? = nil, age: String? = nil,
        vary: String? = nil, varied: String? = nil, askedAt: WallTime, answeredAt: WallTime, redirects: Int? = nil,
        status: Int? = nil,
    ) {
        self.cacheControl = cacheControl
        self.expires = expires
        self.date = date
        self.age = age
        self.vary = vary
        self.varied = varied
        self.askedAt = askedAt
        self.answeredAt = answeredAt
        self.redirects = redirects
        self.status = status
    }
}

extension HTTPFacts {
    /// Separates two facts; no header's value contains this character.
    private static let separator = UInt8(0x1F)
    /// Precedes a known fact.
    private static let known = UInt8(ascii: "=")

    /// The stored text: the facts in order, each known one after `=`, with separators between them. It is read and
    /// written for each item, and takes a tenth of JSON's time.
    var text: String {
        var text = ""
        text.reserveCapacity(160)
        for fact in [cacheControl, expires, date, age, vary, varied] { Self.add(fact, to: &text) }
        text += "=\(askedAt.milliseconds)\u{1F}=\(answeredAt.milliseconds)"
        if redirects != nil || status != nil {
            text += Self.mark
            if let redirects { text += "=\(redirects)" }
        }
        if let status { text += "\u{1F}=\(status)" }
        return text
    }

    private static let mark = "\u{1F}"

    /// Adds a fact and the separator behind it.
    private static func add(_ fact: String?, to text: inout String) {
        if let fact {
            text += "="
            // No header contains the separator, but a user's SQL may have written it.
            if fact.utf8.contains(separator) {
                text.unicodeScalars.append(contentsOf: fact.unicodeScalars.filter { $0.value != UInt32(separator) })
            } else {
                text += fact
            }
        }
        text += mark
    }

    /// - Returns: nil for unreadable text; then the worker revalidates with the origin.
    init?(text: String) {
        // The JSON of earlier versions. Best effort: unreadable text counts as none.
        if text.utf8.first == UInt8(ascii: "{") {
            guard let facts = try? JSONDecoder().decode(HTTPFacts.self, from: Data(text.utf8)) else { return nil }
            self = facts
            return
        }
        let facts = Self.parts(of: text)
        guard (8...10).contains(facts.count), let asked = facts[6].flatMap(Int64.init),
            let answered = facts[7].flatMap(Int64.init)
        else { return nil }
        self.init(
            cacheControl: facts[0], expires: facts[1], date: facts[2], age: facts[3], vary: facts[4], varied: facts[5],
            askedAt: WallTime(clamping: asked), answeredAt: WallTime(clamping: answered),
            redirects: facts.count > 8 ? facts[8].flatMap { Int($0) } : nil,
            status: facts.count > 9 ? facts[9].flatMap { Int($0) } : nil)
    }

    /// The facts between the separators, nil for unknown ones. At most eleven, one more than a valid text has.
    private static func parts(of text: String) -> [String?] {
        var text = text
        return text.withUTF8 { bytes in
            var parts: [String?] = []
            parts.reserveCapacity(11)
            var start = 0
            while parts.count < 11 {
                var end = start
                while end < bytes.count, bytes[end] != separator { end += 1 }
                parts.append(
                    end > start && bytes[start] == known
                        ? String(decoding: UnsafeBufferPointer(rebasing: bytes[(start + 1)..<end]), as: UTF8.self) : nil
                )
                guard end < bytes.count else { break }
                start = end + 1
            }
            return parts
        }
    }
}
