internal import Core
public import SystemPackage

/// Why a request to a bucket failed.
public struct StorageError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Code: Hashable, Sendable {
        /// No answer, or a broken one, after all tries: a later call may succeed.
        case unreachable
        /// The credentials are missing or wrong, or don't allow the request.
        case denied
        /// There is no such bucket.
        case noBucket
        /// The bucket is in another region than the location says.
        case wrongRegion
        /// The object's bytes are not those of its hash.
        case wrongBytes
        /// The object has more bytes than the caller takes.
        case tooLarge
        /// The location, a key, a file of credentials or an option cannot be used.
        case invalid
        /// The request failed for another reason, and another try would fail alike.
        case refused
        /// The local file can't be read or written; ``StorageError/errno`` tells why.
        case file
        /// The task was cancelled.
        case cancelled
    }

    public let code: Code
    /// Sentences for people, at most 500 characters on one line. They never hold a secret key, a token or a signature.
    public let message: String
    /// The system's error for ``Code/file``, if there is one: it distinguishes a full disk from a broken one.
    public let errno: Errno?

    public init(_ code: Code, _ message: String, errno: Errno? = nil) {
        self.code = code
        self.message = MessageText.tidied(message)
        self.errno = errno
    }

    public var description: String { message }
}
