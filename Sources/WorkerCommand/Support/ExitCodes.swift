import ArgumentParser
import ContentCache
import Jobs
import Lists
import PrefetchWorker

/// The exit codes that scripts may rely on; the numbers are those of sysexits(3) if it has one.
extension ExitCode {
    /// A lookup found nothing.
    static let notFound = ExitCode(1)
    /// The work was done, and some items failed.
    static let someFailed = ExitCode(2)
    static let usage = ExitCode(64)
    /// No host could be reached, or the machine lacks a required feature.
    static let unavailable = ExitCode(69)
    static let software = ExitCode(70)
    static let cannotCreate = ExitCode(73)
    static let inputOutput = ExitCode(74)
    /// The disk is full, or another program blocks the database: try again later.
    static let temporary = ExitCode(75)

    init(_ code: WorkerError.Code) {
        self =
            switch code {
            case .cannotCreate: .cannotCreate
            case .inputOutput: .inputOutput
            case .tryLater: .temporary
            case .unavailable: .unavailable
            case .usage: .usage
            case .internalError: .software
            }
    }
}

/// Runs a command's work, and turns an error into a sentence on standard error and an exit code.
func reportingErrors(_ body: () async throws -> Void) async throws {
    do {
        try await body()
    } catch let error as ExitCode {
        throw error
    } catch {
        try fail(WorkerError(ofCommand: error))
    }
}

extension WorkerError {
    /// The error of a command, with the exit code for it.
    init(ofCommand error: any Error) {
        self =
            switch error {
            case let error as WorkerError: error
            case let error as JobsError: WorkerError(error)
            case let error as CacheError: WorkerError(error)
            case let error as SettingsError: WorkerError(.usage, error.message)
            case let error as ListMistake: WorkerError(.usage, error.description)
            default: WorkerError(.internalError, "\(error)")
            }
    }
}

private func fail(_ error: WorkerError) throws -> Never {
    // A message may quote a file or a library, line by line.
    let lines = error.message.split(separator: "\n", omittingEmptySubsequences: false)
    Terminal.error("worker: " + lines.map { Terminal.safe(String($0)) }.joined(separator: "\n"))
    throw ExitCode(error.code)
}
