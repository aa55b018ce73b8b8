internal import Core

/// A rule that makes the cache key of a URL, so that one picture with changing query strings has one key.
public struct CacheKeyRule: Hashable, Sendable {
    private enum Kind: Hashable {
        case dropQuery
        /// Only these parameters count, in the order of their names.
        case keep(Set<String>)
        /// A regular expression and its replacement, in which `\1` to `\9` stand for groups.
        case substitute(KeyPattern)
    }

    private let kind: Kind
    /// The rule as it was written.
    public let text: String

    /// Whether it is a regular expression, whose search may take long.
    var isPattern: Bool { if case .substitute = kind { true } else { false } }

    private static let longestPattern = 500

    /// - Parameter text: `drop-query`, `keep:NAME+NAME` or `s/PATTERN/REPLACEMENT/`, with any character as the slash.
    public init(_ text: String) throws(JobsError) {
        self.text = text
        if text == "drop-query" {
            kind = .dropQuery
        } else if text.hasPrefix("keep:") {
            kind = .keep(Set(text.dropFirst(5).split(separator: "+").map(String.init)))
        } else if text.hasPrefix("s"), let mark = text.dropFirst().first {
            let parts = text.dropFirst(2).split(separator: mark, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 3, parts[2].isEmpty, !parts[0].isEmpty else {
                throw Self.refusal(text, "it needs a pattern and a replacement")
            }
            guard parts[0].utf8.count <= Self.longestPattern else {
                throw Self.refusal(text, "a pattern has 1 to \(Self.longestPattern) bytes")
            }
            do {
                kind = .substitute(try KeyPattern(parts[0], replacement: parts[1]))
            } catch {
                throw Self.refusal(text, "its pattern can't be used: \(error.reason)")
            }
        } else {
            throw Self.refusal(text, "there is no such rule")
        }
    }

    private static func refusal(_ text: String, _ reason: String) -> JobsError {
        JobsError(
            .refused,
            "cache-key must be drop-query, keep:NAME+NAME or s/PATTERN/REPLACEMENT/, not '\(text.prefix(100))': \(reason)."
                + NearestWord.question(
                    String(text.prefix { $0 != ":" && $0 != "/" }), among: ["drop-query", "keep"]))
    }

    /// The key of a URL; the URL itself if the rule leaves no text.
    ///
    /// - Throws: `refused` if the pattern takes too long with this URL.
    public func key(of url: String) throws(JobsError) -> String {
        let whole = URLText.cacheKey(url)
        let key: String
        switch kind {
        case .dropQuery: key = String(whole.prefix { $0 != "?" })
        case .keep(let names): key = Self.keep(names, whole)
        case .substitute(let pattern):
            do {
                key = try pattern.replaced(in: whole)
            } catch {
                throw JobsError(
                    .refused, "The pattern of the job's cache-key takes too long with this URL: '\(pattern.text)'.")
            }
        }
        return key.isEmpty ? whole : key
    }

    private static func keep(_ names: Set<String>, _ url: String) -> String {
        guard let mark = url.firstIndex(of: "?") else { return url }
        let kept = url[url.index(after: mark)...].split(separator: "&")
            .filter { names.contains(String($0.prefix { $0 != "=" })) }.sorted()
        return url[..<mark] + (kept.isEmpty ? "" : "?" + kept.joined(separator: "&"))
    }
}
