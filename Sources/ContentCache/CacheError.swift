internal import SystemPackage

/// Errors of the cache's files.
public struct CacheError: Error, Sendable, CustomStringConvertible {
    public enum Code: Hashable, Sendable {
        /// The folder can't be made, or can't hold a cache.
        case cannotCreate
        /// The folder holds something else, or a cache of another version. It is never repaired.
        case notACache
        /// The bytes on disk aren't what their name says, or are missing.
        case damaged
        /// The disk is full.
        case diskFull
        /// Any other fault of the disk.
        case disk
    }

    public let code: Code
    public let message: String
    /// Whether the disk did not confirm a file's data: the file is given up, whatever the disk says later.
    public internal(set) var isFailedSync = false
    /// Whether the disk said that it can't give the bytes.
    var isLost = false

    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
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
