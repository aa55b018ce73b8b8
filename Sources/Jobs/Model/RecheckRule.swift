internal import Core

/// How often a job asks the origin whether a cached source has changed: `recheck=1h..30d`.
///
/// Each source has an interval of its own. It becomes 1.4 times as long after each check that found the source
/// unchanged, and 0.8 times as long after each check that found it changed. So a picture that changes daily is soon
/// checked about once a day, and a picture that never changes about once in the longest interval.
public struct RecheckRule: Hashable, Sendable {
    /// The shortest and the longest interval, in milliseconds.
    public let bounds: ClosedRange<Int64>

    static let form = "recheck=SHORTEST..LONGEST"

    public init(_ bounds: ClosedRange<Int64>) { self.bounds = bounds }

    /// - Parameter text: two times with units, as in `1h..30d`.
    init(parsing text: String) throws(JobsError) {
        guard let dots = text.firstRange(of: ".."),
            let shortest = JobSettings.milliseconds(String(text[..<dots.lowerBound])),
            let longest = JobSettings.milliseconds(String(text[dots.upperBound...])),
            (1...longest).contains(shortest)
        else {
            throw JobsError(
                .refused,
                "recheck must be the shortest and the longest interval, each with a unit (ms, s, m, h, d), such as 1h..30d, from 1ms to 10000000d and the shortest first, not '\(text.prefix(64))'."
            )
        }
        bounds = shortest...longest
    }

    /// How long a cached source is used before it is checked again, in milliseconds.
    public func interval(of source: SourceRecord) -> Int64 { clamped(source.recheckAfter ?? bounds.lowerBound) }

    /// The interval of a source after an item has used it.
    ///
    /// - Parameters:
    ///   - known: the source as the cache had it before; nil if it is new.
    ///   - rule: the job's rule. Without a rule the source keeps its interval for jobs that have a rule.
    static func interval(of source: SourceRecord, after known: SourceRecord?, _ rule: RecheckRule?) -> Int64? {
        guard let known, let rule, known.fetchedAt != source.fetchedAt else { return known?.recheckAfter }
        let interval = Double(rule.interval(of: known))
        return rule.clamped(Int64(interval * (known.hash == source.hash ? 1.4 : 0.8)))
    }

    private func clamped(_ interval: Int64) -> Int64 { min(max(interval, bounds.lowerBound), bounds.upperBound) }
}

extension SourceRecord {
    /// Sets when the source is checked again; see ``RecheckRule/interval(of:after:_:)``.
    public mutating func planRecheck(_ rule: RecheckRule?, after known: SourceRecord?) {
        recheckAfter = RecheckRule.interval(of: self, after: known, rule)
    }
}

extension JobSettings {
    /// How long a cached source is used without revalidation, in milliseconds; nil for the worker's `--max-age`.
    public func maxAge(of source: SourceRecord) -> Int64? { recheck?.interval(of: source) ?? maxAge }
}
