public import Core
internal import FoundationEssentials

/// The headers of a source's response that determine its freshness. Stored as text in `sources.http`.
public struct HTTPFacts: Hashable, Sendable, Codable {
    public var cacheControl: String?
    public var expires: String?
    public var date: String?
    public var age: String?
    public var vary: String?
    /// The values of the request's headers that `vary` names.
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
        var facts = [cacheControl, expires, date, age, vary, varied, askedAt.description, answeredAt.description]
        if redirects != nil || status != nil { facts.append(redirects.map(String.init)) }
        if let status { facts.append(String(status)) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(128)
        for (place, fact) in facts.enumerated() {
            if place > 0 { bytes.append(Self.separator) }
            guard let fact else { continue }
            bytes.append(Self.known)
            bytes += fact.utf8.lazy.filter { $0 != Self.separator }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// - Returns: nil for unreadable text; then the worker revalidates with the origin.
    init?(text: String) {
        // The JSON of earlier versions. Best effort: unreadable text counts as none.
        if text.utf8.first == UInt8(ascii: "{") {
            guard let facts = try? JSONDecoder().decode(HTTPFacts.self, from: Data(text.utf8)) else { return nil }
            self = facts
            return
        }
        let facts = text.utf8.split(separator: Self.separator, omittingEmptySubsequences: false).map { fact in
            fact.first == Self.known ? String(Substring(fact.dropFirst())) : nil
        }
        guard (8...10).contains(facts.count), let asked = facts[6].flatMap(Int64.init),
            let answered = facts[7].flatMap(Int64.init)
        else { return nil }
        self.init(
            cacheControl: facts[0], expires: facts[1], date: facts[2], age: facts[3], vary: facts[4], varied: facts[5],
            askedAt: WallTime(clamping: asked), answeredAt: WallTime(clamping: answered),
            redirects: facts.count > 8 ? facts[8].flatMap { Int($0) } : nil,
            status: facts.count > 9 ? facts[9].flatMap { Int($0) } : nil)
    }
}
