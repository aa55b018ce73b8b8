/// What HTTP said of a source, as far as it matters for how long it may be used. Stored as JSON in `sources.http`.
public struct HTTPFacts: Hashable, Sendable, Codable {
    public var cacheControl: String?
    public var expires: String?
    public var date: String?
    public var age: String?
    public var vary: String?
    /// The request's headers that `vary` names, as they were sent.
    public var varied: String?
    /// When it was asked for and when the answer came, in UTC milliseconds.
    public var askedAt: Int64
    public var answeredAt: Int64

    public init(
        cacheControl: String? = nil, expires: String? = nil, date: String? = nil, age: String? = nil,
        vary: String? = nil, varied: String? = nil, askedAt: Int64, answeredAt: Int64,
    ) {
        self.cacheControl = cacheControl
        self.expires = expires
        self.date = date
        self.age = age
        self.vary = vary
        self.varied = varied
        self.askedAt = askedAt
        self.answeredAt = answeredAt
    }
}
