public import ContentCache
internal import Core
internal import Download
public import Jobs

/// Why a worker cannot start or continue.
public struct WorkerError: Error, Sendable, CustomStringConvertible {
    public enum Code: Hashable, Sendable {
        /// A folder, file or database can't be created or opened.
        case cannotCreate
        /// The disk failed, or the database is damaged.
        case inputOutput
        /// It may work later: the disk is full, or another program has the lock.
        case tryLater
        /// This machine lacks something that the configuration requires.
        case unavailable
        /// The request is invalid.
        case usage
        case internalError
    }

    public let code: Code
    public let message: String

    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    public init(_ error: JobsError) {
        switch error.code {
        case .cannotOpen, .tooNew, .tooOld: self.init(.cannotCreate, error.message)
        case .corrupt, .inputOutput, .replaced: self.init(.inputOutput, error.message)
        case .busy, .diskFull: self.init(.tryLater, error.message)
        case .refused, .notFound: self.init(.usage, error.message)
        default: self.init(.internalError, error.message)
        }
    }

    public init(_ error: CacheError) {
        switch error.code {
        case .cannotCreate, .notACache: self.init(.cannotCreate, error.message)
        case .diskFull: self.init(.tryLater, error.message)
        case .damaged, .disk: self.init(.inputOutput, error.message)
        }
    }

    /// Any error at the start of a run.
    init(any error: any Error) {
        switch error {
        case let error as WorkerError: self = error
        case let error as JobsError: self.init(error)
        case let error as CacheError: self.init(error)
        case let error as Failure: self.init(.cannotCreate, error.message)
        default: self.init(.internalError, "\(error)")
        }
    }

    public var description: String { message }
}
