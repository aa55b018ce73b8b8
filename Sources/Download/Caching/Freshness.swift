import Glibc

/// For how long a stored response may be used, as RFC 9111 has it for a cache that is shared. Times are UTC seconds.
public struct Freshness: Sendable, Hashable {
    /// It may be used without asking while its age is below.
    public let lifetime: Int64
    /// How old it was when it came.
    public let initialAge: Int64
    public let answeredAt: Int64
    /// `no-cache`, or `no-store` and `private`, which we take for it: each use is asked for first.
    public let mustAsk: Bool
    /// Whether an answer to a request with credentials may be used for another (RFC 9111, section 3.5).
    public let isForAuthorized: Bool
    /// `must-revalidate` and its like: never to be used when it is stale, not even when the origin fails.
    public let isStrict: Bool
    /// For so long after it has become stale it may be used when the origin fails (RFC 5861, section 4); nil where
    /// nothing is said of that.
    private let staleIfError: Int64?

    /// - Parameters:
    ///   - status: some say nothing of how long they hold unless that is said (RFC 9110, section 15.1).
    ///   - times: when the request was sent, and when its response came.
    public init(
        status: Int = 200, cacheControl: String?, expires: String?, date: String?, age: String?, lastModified: String?,
        times: (asked: Int64, answered: Int64),
    ) {
        let directives = Self.directives(cacheControl ?? "")
        let date = date.flatMap(Self.time) ?? times.answered
        let told = age.flatMap(Self.age) ?? 0
        initialAge = max(max(0, times.answered - date), told + max(0, times.answered - times.asked))
        answeredAt = times.answered
        mustAsk = ["no-cache", "no-store", "private"].contains { directives[$0] != nil }
        isForAuthorized = ["public", "must-revalidate", "s-maxage"].contains { directives[$0] != nil }
        isStrict = ["must-revalidate", "proxy-revalidate", "s-maxage", "no-cache", "no-store"].contains {
            directives[$0] != nil
        }
        staleIfError = directives["stale-if-error"].map { Self.seconds($0) ?? 0 }
        if let text = directives["s-maxage"] ?? directives["max-age"] {
            // A lifetime that can't be read is none.
            lifetime = Self.seconds(text) ?? 0
        } else if let expires {
            lifetime = HTTPDate.parseStrictly(Array(expires.utf8).trimmingSpaces()).map { max(0, $0 - date) } ?? 0
        } else if Self.heuristic.contains(status), let modified = lastModified.flatMap(Self.time), modified < date {
            // RFC 9111, section 4.2.2: a tenth of the time since it was changed; here never more than a week.
            lifetime = min((date - modified) / 10, 7 * 86_400)
        } else {
            lifetime = 0
        }
    }

    public func age(at now: Int64) -> Int64 { initialAge + max(0, now - answeredAt) }

    public func isFresh(at now: Int64) -> Bool { !mustAsk && age(at: now) < lifetime }

    /// Whether it may be used though it is stale, since the origin fails.
    ///
    /// - Parameter cacheControl: that of the request, which may allow it for less long.
    public func mayBeUsedOnError(at now: Int64, cacheControl: String?) -> Bool {
        let asked = Self.directives(cacheControl ?? "")["stale-if-error"].map { Self.seconds($0) ?? 0 }
        let limit = [staleIfError, asked].compactMap { $0 }.min()
        return !isStrict && limit.map { age(at: now) - lifetime <= $0 } ?? true
    }

    /// Names in lower case, with their values or nothing; of two of the same name the first counts.
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
            // A field in no-cache="…" or private="…" makes it one for that field only, which we don't keep.
            if name.isEmpty || (["no-cache", "private"].contains(name) && !value.isEmpty) { continue }
            found[name] = found[name] ?? value
        }
        return found
    }

    /// Statuses of a body that may be used again without a stated lifetime.
    private static let heuristic: Set<Int> = [200, 203, 204, 206]

    /// The first of a list; one that can't be read is none (RFC 9111, section 5.1).
    private static func age(_ text: String) -> Int64? {
        text.split(separator: ",", omittingEmptySubsequences: false).first.flatMap { seconds(String($0)) }
    }

    private static func seconds(_ text: String) -> Int64? {
        Decimal.parse(Array(text.utf8).trimmingSpaces()).map { min($0, 1 << 31) }
    }

    private static func time(_ text: String) -> Int64? { HTTPDate.parse(Array(text.utf8).trimmingSpaces()) }
}
