/// Columns that a user has set for a single item; most items have none.
///
/// A class, since it is passed on with its item.
public final class OwnColumns: Sendable {
    /// A JSON object in one line, which is passed on to results, events and delegates.
    public let meta: String?
    /// Replace the job's priority and variants; each header replaces the job's header of the same name.
    public let priority: Int?
    public let variants: String?
    public let headers: [String: String]
    /// The required hash of the body, in lower case, and its size.
    public let sha256: String?
    public let size: Int64?
    /// URLs requested in order, each after the one before has failed for good.
    public let fallbacks: [String]
    /// The number of fallbacks that were used so far.
    public let fallback: Int
    /// Why the item can't run, if it passed the database's checks but is unreadable.
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

    /// The URL to request now; nil for the item's own.
    var askedURL: String? { fallback > 0 ? fallbacks[fallback - 1] : nil }

    /// Whether a further fallback is left.
    public var hasNext: Bool { problem == nil && fallback < fallbacks.count }

    /// Whether the item runs differently from other items of its job.
    public var changesJob: Bool { problem != nil || priority != nil || variants != nil || !headers.isEmpty }

    /// Whether bytes have the required hash and size.
    public func accepts(hash: String, size: Int64) -> Bool {
        (sha256 ?? hash) == hash && (self.size ?? size) == size
    }
}

extension JobDefinition {
    /// The job with the item's columns applied.
    public func changed(by own: OwnColumns) -> JobDefinition {
        var headers = headers
        for (name, value) in own.headers {
            headers = headers.filter { $0.key.lowercased() != name.lowercased() }
            headers[name] = value
        }
        return JobDefinition(
            id: id, variants: own.variants ?? variants, options: options, headers: headers,
            priority: own.priority ?? priority, order: order, problem: problem ?? own.problem,
            hasOwnPriority: own.priority != nil)
    }
}
