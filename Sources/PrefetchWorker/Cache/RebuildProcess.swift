internal import Core
internal import Glibc
internal import Subprocess
internal import SystemPackage

/// A rebuild in a process of its own, since a damaged file may crash the library that reads it.
///
/// SQLite reports damage as an error wherever it sees it. The one crash that was ever seen ended in `malloc`, long after
/// the damaged page had been read, so no check beforehand can exclude it.
public enum RebuildProcess {
    /// Ends this process soon after the one that started it. To be called first in a rebuild's own process.
    public static func endWithParent() {
        let parent = getppid()
        // PR_SET_PDEATHSIG of prctl(2) tells of the parent's thread, which ends long before the parent does. Best effort:
        // without a thread the rebuild goes on to its end.
        _ = DetachedThread.start {
            while getppid() == parent { usleep(100_000) }
            kill(getpid(), SIGKILL)
        }
    }

    /// Runs this program with each of the arguments, until a run of it doesn't crash.
    ///
    /// - Parameters:
    ///   - attempts: the arguments of each run. They share this process's output and environment.
    ///   - database: its path, for messages.
    ///   - tell: called with a sentence when a run crashed and another begins.
    /// - Returns: the exit code of the run that ended by itself.
    /// - Throws: `inputOutput` if every run crashed.
    public static func run(
        _ attempts: [[String]], database: String, tell: (String) -> Void
    ) async throws(WorkerError) -> Int32 {
        var last: Int32 = 0
        for (number, arguments) in attempts.enumerated() {
            switch try await status(of: arguments) {
            case .exited(let code): return code
            case .signaled(let signal):
                guard crashes.contains(signal) else { end(by: signal) }
                last = signal
                guard number + 1 < attempts.count else { break }
                tell(
                    "SQLite crashed on the damaged database \(database) (signal \(signal)). Nothing is lost; the "
                        + "rebuild begins again, and only reads the database this time.")
            }
        }
        throw WorkerError(
            .inputOutput,
            "SQLite crashes when it reads the damaged database \(database) (signal \(last)), so it can't be rebuilt from "
                + "its rows. The database was left where it is. Restore a copy made by 'worker db backup', if there is "
                + "one; or move the database away, and build one from the cache's files with: worker db rebuild --adopt"
        )
    }

    private static let crashes: Set = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP]

    private static func status(of arguments: [String]) async throws(WorkerError) -> TerminationStatus {
        do {
            return try await Subprocess.run(
                .path("/proc/self/exe"), arguments: Arguments(arguments), input: .none,
                output: .fileDescriptor(.standardOutput, closeAfterSpawningProcess: false),
                error: .fileDescriptor(.standardError, closeAfterSpawningProcess: false)
            ).terminationStatus
        } catch {
            throw WorkerError(
                .unavailable, "The rebuild can't be started in a process of its own: \(reason(ofStart: error))")
        }
    }

    /// Ends this process by the signal that has ended its child, so that scripts see it.
    private static func end(by number: Int32) -> Never {
        signal(number, SIG_DFL)
        raise(number)
        // A signal that is blocked here.
        exit(128 + number)
    }
}
