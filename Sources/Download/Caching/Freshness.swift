import Glibc

/// How long a shared cache may use a stored response (RFC 9111). Times are UTC seconds.
public struct Freshness: Sendable, Hashable {
    /// The response is fresh while its age is below this.
    public let lifetime: Int64
    /// The age of the response when it arrived.
    public let initialAge: Int64
    public let answeredAt: Int64
    /// `no-cache`; also `no-store` and `private`, which are treated like it. The worker revalidates before each use.
    public let mustRevalidate: Bool
    /// Whether a response to a request with credentials may be used for another request (RFC 9111, section 3.5).
    public let isForAuthorized: Bool
    /// `must-revalidate` and similar: a stale response is never used, even if the origin fails.
    public let isStrict: Bool
    /// How long after it has become stale the response may be used if the origin fails (RFC 5861, section 4); nil if
    /// the response does not say.
    private let staleIfError: Int64?

    /// - Parameters:
    ///   - status: some statuses have no lifetime unless the response states one (RFC 9110, section 15.1).
    ///   - times: when the request was sent and when its response arrived.
    public init(
        status: Int = 200, cacheControl: String?, expires: String?, date: String?, age: String?, lastModified: String?,
        times: (asked: Int64, answered: Int64),
    ) {
        let directives = Self.directives(cacheControl ?? "")
        let date = date.flatMap(Self.time) ?? times.answered
        let told = age.flatMap(Self.age) ?? 0
        initialAge = max(max(0, times.answered - date), told + max(0, times.answered - times.asked))
        answeredAt = times.answered
        mustRevalidate = ["no-cache", "no-store", "private"].contains { directives[$0] != nil }
        isForAuthorized = ["public", "must-revalidate", "s-maxage"].contains { directives[$0] != nil }
        isStrict = ["must-revalidate", "proxy-revalidate", "s-maxage", "no-cache", "no-store"].contains {
            directives[$0] != nil
        }
        staleIfError = directives["stale-if-error"].map { Self.seconds($0) ?? 0 }
        if let text = directives["s-maxage"] ?? directives["max-age"] {
            // A lifetime that cannot be parsed counts as 0.
            lifetime = Self.seconds(text) ?? 0
        } else if let expires {
            lifetime = HTTPDate.parseStrictly(Array(expires.utf8).trimmingSpaces()).map { max(0, $0 - date) } ?? 0
        } else if Self.heuristic.contains(status), let modified = lastModified.flatMap(Self.time), modified < date {
            // RFC 9111, section 4.2.2: a tenth of the time since the last change; here at most a week.
            lifetime = min((date - modified) / 10, 7 * 86_400)
        } else {
            lifetime = 0
        }
    }

    public func age(at now: Int64) -> Int64 { initialAge + max(0, now - answeredAt) }

    public func isFresh(at now: Int64) -> Bool { !mustRevalidate && age(at: now) < lifetime }

    /// Whether a stale response may be used because the origin fails.
    ///
    /// - Parameter cacheControl: the request's `Cache-Control`, which may shorten the time.
    public func mayBeUsedOnError(at now: Int64, cacheControl: String?) -> Bool {
        let asked = Self.directives(cacheControl ?? "")["stale-if-error"].map { Self.seconds($0) ?? 0 }
        let limit = [staleIfError, asked].compactMap { $0 }.min()
        return !isStrict && limit.map { age(at: now) - lifetime <= $0 } ?? true
    }

    /// Names in lower case, with their values if they have any. Of several directives with one name the first counts.
    private static func directives(_ text: String) -> [String: String] {
        var found: [String: String] = [:]
        var rest = Substring(text)
        while !rest.isEmpty {
            var part = ""
            var isQuoted = false
            while let character = rest.popFirst(), isQuoted || character != "," {
                if character == "\"" { isQuoted.toggle() } else { part.append(character) }
            }
            let halves = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = halves[0].filter { $0 != " " && $0 != "\t" }.lowercased()
            let value = halves.count > 1 ? halves[1].filter { $0 != " " && $0 != "\t" } : ""
            // no-cache="…" and private="…" concern only the named fields, and the worker keeps none of them.
            if name.isEmpty || (["no-cache", "private"].contains(name) && !value.isEmpty) { continue }
            found[name] = found[name] ?? value
        }
        return found
    }

    /// Statuses of bodies that may be reused without a stated lifetime.
    private static let heuristic: Set<Int> = [200, 203, 204, 206]

    /// The first number of a list; text that cannot be parsed counts as none (RFC 9111, section 5.1).
    private static func age(_ text: String) -> Int64? {
        text.split(separator: ",", omittingEmptySubsequences: false).first.flatMap { seconds(String($0)) }
    }

    private static func seconds(_ text: String) -> Int64? {
        Decimal.parse(Array(text.utf8).trimmingSpaces()).map { min($0, 1 << 31) }
    }

    private static func time(_ text: String) -> Int64? { HTTPDate.parse(Array(text.utf8).trimmingSpaces()) }
}
