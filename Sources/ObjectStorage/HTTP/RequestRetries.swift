internal import Core

/// How many times a request is tried after temporary errors, and how long the pauses in between are.
struct RequestRetries: Hashable, Sendable {
    /// The first included.
    var tries: Int
    /// Milliseconds.
    var shortestPause: Int
    var longestPause: Int

    /// The result of one try.
    enum Attempt<Value> {
        case done(Value)
        /// - Parameter after: milliseconds that the server asks for.
        case again(reason: String, after: Int?)
    }

    enum Outcome<Value> {
        case done(Value)
        /// After the last try.
        case gaveUp(reason: String)
    }

    /// - Throws: the error of a try, and `cancelled` if the task is cancelled between two tries.
    func run<Value>(
        _ attempt: () async throws(StorageError) -> Attempt<Value>,
    ) async throws(StorageError) -> Outcome<Value> {
        var pauses = RetryPauses(self)
        var random = SystemRandomNumberGenerator()
        var left = max(1, tries)
        while true {
            switch try await attempt() {
            case .done(let value): return .done(value)
            case .again(let reason, let after):
                left -= 1
                guard left > 0 else { return .gaveUp(reason: reason) }
                do {
                    try await Task.sleep(for: .milliseconds(pauses.next(atLeast: after, using: &random)))
                } catch {
                    throw StorageError(.cancelled, "The task was cancelled.")
                }
            }
        }
    }
}

/// Pauses with "decorrelated jitter": each is between the shortest and three times the one before, by chance, so that
/// workers that failed together don't come back together.
///
/// See https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
struct RetryPauses {
    private let shortest: Int
    private let longest: Int
    private var last: Int

    /// A pause lasts a day at most, even if the options allow more.
    init(_ policy: RequestRetries) {
        shortest = min(max(0, policy.shortestPause), 86_400_000)
        longest = min(max(shortest, policy.longestPause), 86_400_000)
        last = shortest
    }

    /// Milliseconds.
    ///
    /// - Parameter announced: a pause that the server asks for; it doesn't exceed the longest either.
    mutating func next(atLeast announced: Int?, using random: inout some RandomNumberGenerator) -> Int {
        last = min(longest, Int.random(in: shortest...max(shortest, 3 * last), using: &random))
        return min(longest, max(last, announced ?? 0))
    }
}
