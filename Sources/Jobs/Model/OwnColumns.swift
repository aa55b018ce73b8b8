/// Columns that a person has given for one item alone; most items have none.
///
/// An object, since it goes from hand to hand with its item.
public final class OwnColumns: Sendable {
    /// A JSON object in one line, which results, events and delegates are given.
    public let meta: String?
    /// These three in place of the job's; headers in place of those of the same name.
    public let priority: Int?
    public let variants: String?
    public let headers: [String: String]
    /// The body has to have this hash, in lower case, and this size.
    public let sha256: String?
    public let size: Int64?
    /// URLs to ask for, in order, when the one before has failed for good.
    public let fallbacks: [String]
    /// How many of them were moved on to.
    public let fallback: Int
    /// Why it can't be run, where it passed the database's checks and can't be read all the same.
    public let problem: String?

    init(
        meta: String?, priority: Int?, variants: String?, sha256: String?, size: Int64?,
        _ lists: (headers: [String: String], fallbacks: [String])?, fallback: Int,
    ) {
        self.meta = meta
        self.priority = priority.map { min(max($0, -100), 100) }
        self.variants = variants
        self.sha256 = sha256
        self.size = size.map { max(0, $0) }
        headers = lists?.headers ?? [:]
        fallbacks = lists?.fallbacks ?? []
        problem = lists == nil ? "The item's headers or fallbacks can't be read as JSON." : nil
        self.fallback = min(max(fallback, 0), fallbacks.count)
    }

    /// The URL that is asked for now; nil for the item's own.
    var askedURL: String? { fallback > 0 ? fallbacks[fallback - 1] : nil }

    /// Whether another URL is left.
    public var hasNext: Bool { problem == nil && fallback < fallbacks.count }

    /// Whether it is run another way than other items of its job.
    public var changesJob: Bool { problem != nil || priority != nil || variants != nil || !headers.isEmpty }

    /// Whether bytes are those that the item is to have.
    public func accepts(hash: String, size: Int64) -> Bool {
        (sha256 ?? hash) == hash && (self.size ?? size) == size
    }
}

extension JobDefinition {
    /// The job as it is for one item.
    public func changed(by own: OwnColumns) -> JobDefinition {
        var headers = headers
        for (name, value) in own.headers {
            headers = headers.filter { $0.key.lowercased() != name.lowercased() }
            headers[name] = value
        }
        return JobDefinition(
            id: id, variants: own.variants ?? variants, options: options, headers: headers,
            priority: own.priority ?? priority, order: order, problem: problem ?? own.problem)
    }
}
