import Core
import Crypto
import Synchronization
public import SystemPackage

/// A body that arrived whole: an open file, its length and its hash.
///
/// The downloader counts it against ``DownloadConfiguration/maxUnconsumedBodies`` until ``markConsumed()`` or until the
/// last reference goes, whichever is first.
public final class BodyFile: Sendable {
    /// In bytes.
    public let size: Int64
    /// Lower-case hexadecimal.
    public let sha256: String

    /// The inspector's name for it, where it gave one.
    public let kind: String?

    /// The reservation, for the code that takes the file over.
    public let room: (any SpaceReservation)?

    private let descriptor: Mutex<FileDescriptor?>
    private let onConsumed: Mutex<(@Sendable () -> Void)?>

    /// Takes ownership of the descriptor.
    init(
        _ descriptor: FileDescriptor, size: Int64, sha256: String, kind: String? = nil,
        room: (any SpaceReservation)? = nil,
        onConsumed: @escaping @Sendable () -> Void,
    ) {
        self.room = room
        self.kind = kind
        self.size = size
        self.sha256 = sha256
        self.descriptor = Mutex(descriptor)
        self.onConsumed = Mutex(onConsumed)
    }

    deinit {
        markConsumed()
        // The body was not wanted: an error on closing changes nothing.
        try? descriptor.withLock { $0 }?.close()
    }

    /// Lends the file, positioned at its start the first time. Calling this after ``takeDescriptor()`` is a
    /// programmer error.
    public func withDescriptor<R>(_ body: (FileDescriptor) throws -> R) rethrows -> R {
        guard let lent = descriptor.withLock({ $0 }) else { preconditionFailure("The descriptor was taken.") }
        defer { withExtendedLifetime(self) {} }
        return try body(lent)
    }

    /// Hands the file over: from now on the caller closes it. Taking it twice is a programmer error.
    public func takeDescriptor() -> FileDescriptor {
        guard let taken = descriptor.withLock({ $0.take() }) else { preconditionFailure("The descriptor was taken.") }
        return taken
    }

    /// Makes room for another download. Further calls do nothing.
    public func markConsumed() {
        onConsumed.withLock { $0.take() }?()
    }
}

/// Room on the disk that a body takes up while it arrives and until its file is closed.
///
/// The downloader asks for it before it writes, and holds it as long as it holds the file; who takes the file over
/// takes this as well. What was set aside is given back when the last reference goes.
public protocol SpaceReservation: AnyObject, Sendable {
    /// Sets room aside for so many bytes more. Called on the download thread, which it doesn't hold up.
    ///
    /// - Parameter onAnswer: where this returns false, called once, from any thread, when it is worth asking again.
    /// - Returns: whether there is room now. Where there isn't, the transfer pauses and the others go on.
    /// - Throws: an `Errno`: `noSpace` where there is none, `fileTooLarge` for a body that is larger than there can
    ///   ever be.
    func grow(by bytes: Int, onAnswer: @escaping @Sendable () -> Void) throws -> Bool
}

/// Looks at a body while it arrives, now and then.
public struct BodyWatch: Sendable {
    /// The least time between two looks, and before the first.
    public let interval: Duration
    /// Called on the download thread, which it must not hold up.
    public let look: @Sendable (PartialBody) -> Void

    public init(every interval: Duration, look: @escaping @Sendable (PartialBody) -> Void) {
        self.interval = interval
        self.look = look
    }
}

/// The part of a body that has arrived so far.
public struct PartialBody: Sendable {
    /// The body's file. The receiver closes it.
    public let file: FileDescriptor
    /// Bytes that are in it.
    public let received: Int64
    /// Bytes that were announced; nil where the origin didn't say, or where they have to be decoded first.
    public let expected: Int64?
}

func digest(of text: String) -> String { String(hexadecimal: Array(SHA256.hash(data: Array(text.utf8)))) }
