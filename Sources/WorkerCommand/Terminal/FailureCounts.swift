import Core
import PrefetchWorker

/// The failures of jobs in words.
extension FailureCounts {
    private var prefix: String { isCut ? "of the first \(Self.maxFailures): " : "" }

    /// `3 http-404 at a.example, 1 timeout at b.example and 7 others`.
    var text: String {
        prefix + Self.list(counts.map { ($0.count, "\($0.failureClass) at \(Terminal.safe($0.host))") })
    }

    /// `12 http-404, 3 timeout`.
    var byClass: String { prefix + Self.list(Self.sums(counts.map { ($0.failureClass, $0.count) })) }

    /// `a.example (10), b.example (5)`.
    var byHost: String {
        let sums = Self.sums(counts.map { (Terminal.safe($0.host), $0.count) })
        let others = sums.count > 4 ? " and \(Output.count(sums.count - 4, "other"))" : ""
        return sums.prefix(4).map { "\($0.1) (\($0.0))" }.joined(separator: ", ") + others
    }

    private static func sums(_ pairs: [(String, Int)]) -> [(Int, String)] {
        var sums: [String: Int] = [:]
        for (word, count) in pairs { sums[word, default: 0] += count }
        return sums.map { ($0.value, $0.key) }.sorted { ($1.0, $0.1) < ($0.0, $1.1) }
    }

    private static func list(_ counts: [(Int, String)]) -> String {
        let others = counts.dropFirst(4).reduce(0) { $0 + $1.0 }
        return counts.prefix(4).map { "\($0.0) \($0.1)" }.joined(separator: ", ")
            + (others > 0 ? " and \(Output.count(others, "other"))" : "")
    }
}
