internal import ContentCache
internal import Core
internal import Jobs
internal import Subprocess
internal import SystemPackage

// The item does not cause errors of the database and the cache: it goes back to the queue, and the worker pauses.
extension Failure {
    init(_ error: CacheError) { self.init(error.code == .diskFull ? .diskFull : .diskError, error.message) }
    init(_ error: JobsError) { self.init(error.code == .diskFull ? .diskFull : .diskError, "\(error)") }
}

extension Errno {
    /// A lack of descriptors, processes or memory of this machine, of which no item is guilty.
    var isShortage: Bool {
        [.tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory, .noBufferSpace, .resourceTemporarilyUnavailable]
            .contains(self)
    }

    /// A full disk or a used-up quota.
    var isFullDisk: Bool { self == .noSpace || self == .diskQuotaExceeded }
}

/// Why a program could not be started, without the words of the library that starts it.
func reason(ofStart error: any Error) -> String {
    guard let error = error as? SubprocessError else { return "\(error)" }
    return error.underlyingError.map { "\($0)" } ?? "it can't be started"
}
