import ArgumentParser
import Glibc
import Logging
import PrefetchWorker
import UnixSignals

/// Runs `body` and requests its stop at the first SIGINT or SIGTERM; the second ends the process.
///
/// - Returns: the result, and the exit code for the signal that stopped it; nil if no signal came.
func stoppable<R: Sendable>(_ body: (StopSignal) async throws -> R) async throws -> (result: R, interruption: ExitCode?)
{
    let stop = StopSignal()
    return try await withThrowingTaskGroup(of: ExitCode?.self) { group in
        group.addTask {
            var first: (code: ExitCode, at: ContinuousClock.Instant)?
            for await signal in await UnixSignalsSequence(trapping: .sigint, .sigterm) {
                let code = ExitCode(signal == .sigint ? 130 : 143)
                // timeout(1) sends its signal to the process and then to its group: two signals for one request.
                if let first, .now - first.at >= .milliseconds(100) { _exit(code.rawValue) }
                if first == nil { first = (code, .now) }
                stop.request()
            }
            return first?.code
        }
        let result = try await body(stop)
        group.cancelAll()
        return (result, try await group.next() ?? nil)
    }
}

extension StopSignal {
    /// The first signal requests a clean stop, the second ends the process. Nothing is lost either way: the next worker
    /// reclaims the leases.
    func requestAtSignals(_ logger: Logger) async {
        var first: ContinuousClock.Instant?
        for await signal in await UnixSignalsSequence(trapping: .sigterm, .sigint) {
            if let first {
                // timeout(1) sends its signal to the process and then to its group: two signals for one request.
                if .now - first < .milliseconds(100) { continue }
                _exit(signal == .sigint ? 130 : 143)
            }
            first = .now
            logger.notice(
                "Stopping: items in flight are finished, the others stay in the queue. Signal again to stop immediately."
            )
            request()
        }
    }
}
