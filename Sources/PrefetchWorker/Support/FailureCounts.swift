internal import Core
public import Jobs

/// The failures of jobs by class and host, the most frequent first.
public struct FailureCounts: Sendable {
    public struct Count: Encodable, Sendable {
        public let failureClass: String
        public let host: String
        public let count: Int

        enum CodingKeys: String, CodingKey {
            case failureClass = "class"
            case host, count
        }
    }

    public let counts: [Count]
    /// Whether only the first failures of a job were counted.
    public let isCut: Bool
    /// The failures of a job that are counted.
    public static let maxFailures = 10_000

    public init(of jobs: [JobID], in store: JobStore) async throws(JobsError) {
        var isCut = false
        var numbers: [[String]: Int] = [:]
        for job in jobs {
            let failures = try await store.reports.failures(job: job, limit: Self.maxFailures)
            if failures.count == Self.maxFailures { isCut = true }
            for failure in failures {
                let host = HostNames.name(ofURL: failure.url)
                numbers[[failure.failureClass, host.isEmpty ? Self.noHost : host], default: 0] += 1
            }
        }
        self.isCut = isCut
        counts = numbers.map { Count(failureClass: $0.key[0], host: $0.key[1], count: $0.value) }
            .sorted { ($1.count, $0.host, $0.failureClass) < ($0.count, $1.host, $1.failureClass) }
    }

    private init(_ counts: [Count], isCut: Bool) { (self.counts, self.isCut) = (counts, isCut) }

    /// In place of a host, for URLs without one, such as `file:`.
    private static let noHost = "no host"

    /// Without the failures that are no fault of a host, such as an address that the worker may not connect to.
    public var ofHosts: FailureCounts {
        let ofHosts = counts.filter { count in
            count.host != Self.noHost && FailureClass(rawValue: count.failureClass)?.isOfHost ?? true
        }
        return FailureCounts(ofHosts, isCut: isCut)
    }
}
