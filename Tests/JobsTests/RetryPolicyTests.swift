import Core
import Jobs
import Testing

@Suite("Retries", .timeLimit(.minutes(15)))
struct RetryPolicyTests {
    private let latest = RetryPolicy(random: { $0.upperBound })
    private let earliest = RetryPolicy(random: { $0.lowerBound })

    @Test(arguments: [(0, 1_000), (1, 2_000), (2, 4_000)] as [(Int, Int64)])
    func `The backoff lies between zero and a bound that doubles`(_ attempts: Int, _ bound: Int64) {
        #expect(latest.decide(.timeout, attempts: attempts) == .retry(after: bound))
        #expect(earliest.decide(.timeout, attempts: attempts) == .retry(after: 0))
    }

    @Test(arguments: [FailureClass.timeout, .http(503), .truncated])
    func `A temporary failure has four tries`(_ failure: FailureClass) {
        #expect(latest.decide(failure, attempts: 2) != .end)
        #expect(latest.decide(failure, attempts: 3) == .end)
        #expect(latest.decide(failure, attempts: 3, retryAfter: 5_000) == .end)
    }

    @Test func `The bound of the backoff stops growing at its cap`() {
        let patient = RetryPolicy(maxTries: 1_000, random: { $0.upperBound })
        #expect(patient.decide(.dns, attempts: 5) == .retry(after: 32_000))
        #expect(patient.decide(.dns, attempts: 6) == .retry(after: 60_000))
        #expect(patient.decide(.dns, attempts: 900) == .retry(after: 60_000))
    }

    static let retryAfters: [(asked: Int64, expected: Int64)] = [
        (-5, 1_000), (0, 1_000), (500, 1_000), (1_000, 1_000), (90_000, 90_000), (3_600_000, 3_600_000),
        (3_600_001, 3_600_000), (.max, 3_600_000),
    ]

    @Test(arguments: retryAfters)
    func `Retry-After is a minimum, up to an hour`(_ row: (asked: Int64, expected: Int64)) {
        #expect(latest.decide(.http(429), attempts: 0, retryAfter: row.asked) == .retry(after: row.expected))
    }

    @Test(arguments: [FailureClass.http(404), .badImage, .notCached, .transform, .denied])
    func `A permanent failure is not retried`(_ failure: FailureClass) {
        #expect(latest.decide(failure, attempts: 0, retryAfter: 1_000) == .end)
    }

    @Test(arguments: [FailureClass.diskFull, .diskError], [0, 3, 100])
    func `A disk failure never uses up a try`(_ failure: FailureClass, _ attempts: Int) {
        #expect(latest.decide(failure, attempts: attempts) == .putBack)
    }

    @Test func `By default the jitter is random`() {
        let policy = RetryPolicy()
        #expect(Set((0..<50).map { _ in policy.decide(.dns, attempts: 2) }).count > 1)
    }
}
