import ArgumentParser
import Glibc
import PrefetchWorker
import UnixSignals

/// Runs `body` and requests its stop at the first SIGINT or SIGTERM; the second ends the process.
///
/// - Parameter patience: how long after the first signal the process ends in any case; nil for as long as `body` takes.
/// - Returns: the result, and the exit code for the signal that stopped it; nil if no signal came.
func stoppable<R: Sendable>(
    patience: Duration? = nil, _ body: (StopSignal) async throws -> R,
) async throws -> (result: R, interruption: ExitCode?) {
    let stop = StopSignal()
    return try await withThrowingTaskGroup(of: ExitCode?.self) { group in
        group.addTask { await stop.requestAtSignals(patience: patience) }
        let result = try await body(stop)
        group.cancelAll()
        return (result, try await group.next() ?? nil)
    }
}

extension StopSignal {
    /// Requests a stop when `isOver` is true, which is asked ten times a second until the task is cancelled.
    func request(when isOver: () async throws -> Bool) async {
        while !Task.isCancelled {
            // Best effort: the run itself reports a database that cannot be read, and cancellation ends the sleep.
            if (try? await isOver()) == true { return request() }
            try? await Task.sleep(for: .milliseconds(100))
        }
    }

    /// Requests a stop at the first SIGINT or SIGTERM, and ends the process at the second, until the task is cancelled.
    /// The second loses nothing either: the next worker reclaims the leases.
    ///
    /// - Parameters:
    ///   - patience: how long after the first signal the process ends in any case.
    ///   - onFirst: called before the stop is requested.
    /// - Returns: the exit code for the first signal; nil if none came.
    func requestAtSignals(patience: Duration? = nil, onFirst: () -> Void = {}) async -> ExitCode? {
        var first: (code: ExitCode, at: ContinuousClock.Instant)?
        for await signal in await UnixSignalsSequence(trapping: .sigint, .sigterm) {
            let code = ExitCode(signal == .sigint ? 130 : 143)
            guard let known = first else {
                first = (code, .now)
                onFirst()
                request()
                if let patience {
                    Task {
                        try await Task.sleep(for: patience)
                        Terminal.error("worker: Interrupted.")
                        _exit(code.rawValue)
                    }
                }
                continue
            }
            // timeout(1) sends its signal to the process and then to its group: two signals for one request.
            if .now - known.at >= .milliseconds(100) { _exit(code.rawValue) }
        }
        return first?.code
    }
}
