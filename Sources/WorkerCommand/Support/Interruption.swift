import ArgumentParser
import Glibc
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
