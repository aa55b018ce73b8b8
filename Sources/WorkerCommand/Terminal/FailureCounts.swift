import Core
import Jobs
import PrefetchWorker

/// The failures of jobs by class and host, the most frequent first.
struct FailureCounts {
    struct Count: Encodable {
        let failureClass: String
        let host: String
        let count: Int

        enum CodingKeys: String, CodingKey {
            case failureClass = "class"
            case host, count
        }
    }

    let counts: [Count]
    /// Whether only the first failures of a job were counted.
    private let isCut: Bool
    private static let maxFailures = 10_000

    init(of jobs: [JobID], in store: JobStore) async throws(JobsError) {
        var isCut = false
        var numbers: [[String]: Int] = [:]
        for job in jobs {
            let failures = try await store.reports.failures(job: job, limit: Self.maxFailures)
            if failures.count == Self.maxFailures { isCut = true }
            for failure in failures {
                numbers[[failure.failureClass, HostNames.name(ofURL: failure.url)], default: 0] += 1
            }
        }
        self.isCut = isCut
        counts = numbers.map { Count(failureClass: $0.key[0], host: $0.key[1], count: $0.value) }
            .sorted { ($1.count, $0.host, $0.failureClass) < ($0.count, $1.host, $1.failureClass) }
    }

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
        let others = sums.count > 4 ? " and \(sums.count - 4) others" : ""
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
            + (others > 0 ? " and \(others) others" : "")
    }
}
