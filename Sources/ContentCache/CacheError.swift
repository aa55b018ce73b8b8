internal import SystemPackage

/// Errors of the cache's files.
public struct CacheError: Error, Sendable, CustomStringConvertible {
    public enum Code: Hashable, Sendable {
        /// The folder can't be created, or can't hold a cache.
        case cannotCreate
        /// The folder has other content, or a cache of another version. It is never repaired.
        case notACache
        /// The bytes on disk differ from the blob's hash, or are missing.
        case damaged
        /// The disk is full.
        case diskFull
        /// Any other disk error.
        case disk
    }

    public let code: Code
    public let message: String
    /// Whether the disk did not confirm a file's data. The file is discarded, even if a later sync succeeds.
    public internal(set) var isFailedSync = false
    /// Whether the backing store did not answer, and may answer later.
    public internal(set) var isUnreachable = false
    /// Whether the disk reported that it cannot read the bytes.
    var isLost = false

    public init(_ code: Code, _ message: String, isUnreachable: Bool = false) {
        self.code = code
        self.message = message
        self.isUnreachable = isUnreachable
    }

    init(_ errno: Errno, _ action: String) {
        let isFull = errno == .noSpace || errno == .diskQuotaExceeded
        self.init(isFull ? .diskFull : .disk, "\(action): \(errno).")
        isLost = errno == .ioError
    }

    init(failedSync errno: Errno, _ action: String) {
        self.init(errno, action)
        isFailedSync = true
    }

    public var description: String { message }
}
