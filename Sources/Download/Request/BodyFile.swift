import Core
import Hashing
import Synchronization
public import SystemPackage

/// A complete body: an open file, its length and its hash.
///
/// It counts against ``DownloadConfiguration/maxUnconsumedBodies`` until ``markConsumed()`` or until its last reference
/// is released, whichever is first.
public final class BodyFile: Sendable {
    /// In bytes.
    public let size: Int64
    /// Lower-case hexadecimal.
    public let sha256: String

    /// The inspector's name for the body's kind; nil if it gave none.
    public let kind: String?

    /// The space reservation, for the code that takes the file.
    public let reservation: (any SpaceReservation)?

    private let descriptor: Mutex<FileDescriptor?>
    private let onConsumed: Mutex<(@Sendable () -> Void)?>

    /// Takes ownership of the descriptor.
    init(
        _ descriptor: FileDescriptor, size: Int64, sha256: String, kind: String? = nil,
        reservation: (any SpaceReservation)? = nil,
        onConsumed: @escaping @Sendable () -> Void,
    ) {
        self.reservation = reservation
        self.kind = kind
        self.size = size
        self.sha256 = sha256
        self.descriptor = Mutex(descriptor)
        self.onConsumed = Mutex(onConsumed)
    }

    deinit {
        markConsumed()
        // Best effort: the body is discarded, so an error on closing changes nothing.
        try? descriptor.withLock { $0 }?.close()
    }

    /// Lends the file; its offset is 0 at the first call. Calling this after ``takeDescriptor()`` is a programmer
    /// error.
    public func withDescriptor<R>(_ body: (FileDescriptor) throws -> R) rethrows -> R {
        guard let lent = descriptor.withLock({ $0 }) else { preconditionFailure("The descriptor was taken.") }
        defer { withExtendedLifetime(self) {} }
        return try body(lent)
    }

    /// Hands over the descriptor, which the caller closes. Calling this twice is a programmer error.
    public func takeDescriptor() -> FileDescriptor {
        guard let taken = descriptor.withLock({ $0.take() }) else { preconditionFailure("The descriptor was taken.") }
        return taken
    }

    /// Stops counting the body as unconsumed, so that another download may start. Further calls do nothing.
    public func markConsumed() {
        onConsumed.withLock { $0.take() }?()
    }
}

/// Disk space that is reserved for a body while it arrives and until its file is closed.
///
/// The downloader reserves space before it writes, and holds the reservation as long as the file. Code that takes the
/// file takes the reservation too. The space is released with the last reference.
public protocol SpaceReservation: AnyObject, Sendable {
    /// Reserves this many more bytes. Called on the download thread; it must not block.
    ///
    /// - Parameter onAnswer: if this returns false, called once, from any thread, when trying again may succeed.
    /// - Returns: whether the space is reserved. If not, this transfer pauses and the others continue.
    /// - Throws: a `Failure` if there is no space, and the `Errno` `fileTooLarge` for a body that is larger than the
    ///   limit.
    func grow(by bytes: Int, onAnswer: @escaping @Sendable () -> Void) throws -> Bool
}

/// Observes a body while it arrives, at intervals.
public struct BodyWatch: Sendable {
    /// The least time between two calls, and before the first.
    public let interval: Duration
    /// Called on the download thread; it must not block.
    public let look: @Sendable (PartialBody) -> Void

    public init(every interval: Duration, look: @escaping @Sendable (PartialBody) -> Void) {
        self.interval = interval
        self.look = look
    }
}

/// Observes how many bytes of a body have arrived: at its beginning, at intervals, and at its end.
public struct BodyProgress: Sendable {
    public enum Stage: Sendable {
        case began, continued
        /// All bytes have arrived.
        case ended
        /// No more will arrive.
        case failed
    }

    /// The least time between two calls, those for the beginning and the end excepted.
    public let interval: Duration
    /// Called on the download thread with the bytes so far, after content decoding, and the bytes in all, if they are
    /// announced; it must not block.
    public let tell: @Sendable (Stage, Int64, Int64?) -> Void

    public init(every interval: Duration, tell: @escaping @Sendable (Stage, Int64, Int64?) -> Void) {
        self.interval = interval
        self.tell = tell
    }
}

/// The part of a body that has arrived so far.
public struct PartialBody: Sendable {
    /// The body's file. The receiver closes it.
    public let file: FileDescriptor
    /// Bytes received so far.
    public let received: Int64
    /// Announced bytes; nil if the origin announced none, or if they have a content coding.
    public let expected: Int64?
}

func digest(of text: String) -> String { String(hexadecimal: SHA256.digest(of: Array(text.utf8))) }
