/// How the cache key is made of a URL, so that one picture behind changing query strings is one.
public enum CacheKeyRule: Hashable, Sendable {
    case dropQuery
    /// Only these parameters count, in the order of their names.
    case keep(Set<String>)
    /// A regular expression and what takes its place; `\1` to `\9` stand for its groups.
    case substitute(pattern: String, replacement: String)

    private static let longestPattern = 500

    /// - Parameter text: `drop-query`, `keep:NAME+NAME` or `s/PATTERN/REPLACEMENT/`, with any mark for the slash.
    public init(_ text: String) throws(JobsError) {
        if text == "drop-query" {
            self = .dropQuery
        } else if text.hasPrefix("keep:") {
            self = .keep(Set(text.dropFirst(5).split(separator: "+").map(String.init)))
        } else if text.hasPrefix("s"), let mark = text.dropFirst().first {
            let parts = text.dropFirst(2).split(separator: mark, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 3, parts[2].isEmpty, !parts[0].isEmpty, parts[0].utf8.count <= Self.longestPattern
            else { throw Self.refusal(text, "it needs a pattern and a replacement") }
            self = .substitute(pattern: parts[0], replacement: parts[1])
            do {
                _ = try Regex(parts[0])
            } catch {
                throw Self.refusal(text, "its pattern can't be read: \(error)")
            }
        } else {
            throw Self.refusal(text, "there is no such rule")
        }
    }

    private static func refusal(_ text: String, _ reason: String) -> JobsError {
        JobsError(
            .refused,
            "cache-key must be drop-query, keep:NAME+NAME or s/PATTERN/REPLACEMENT/, not '\(text.prefix(100))': \(reason)."
        )
    }

    /// The key of a URL. Never empty, whatever the rule makes of it.
    public func key(of url: String) -> String {
        let whole = URLText.cacheKey(url)
        let key =
            switch self {
            case .dropQuery: String(whole.prefix { $0 != "?" })
            case .keep(let names): Self.keep(names, whole)
            case .substitute(let pattern, let replacement): Self.substitute(pattern, replacement, whole)
            }
        return key.isEmpty ? whole : key
    }

    private static func keep(_ names: Set<String>, _ url: String) -> String {
        guard let mark = url.firstIndex(of: "?") else { return url }
        let kept = url[url.index(after: mark)...].split(separator: "&")
            .filter { names.contains(String($0.prefix { $0 != "=" })) }.sorted()
        return url[..<mark] + (kept.isEmpty ? "" : "?" + kept.joined(separator: "&"))
    }

    private static func substitute(_ pattern: String, _ replacement: String, _ url: String) -> String {
        // It was tried when the rule was made; what can't be read any more changes nothing.
        guard let regex = try? Regex(pattern) else { return url }
        return url.replacing(regex) { match in
            var result = ""
            var isEscaped = false
            for character in replacement {
                if isEscaped, let number = character.wholeNumberValue, number < match.output.count {
                    result += match.output[number].substring ?? ""
                } else if isEscaped || character != "\\" {
                    result.append(character)
                }
                isEscaped = !isEscaped && character == "\\"
            }
            return result
        }
    }
}
