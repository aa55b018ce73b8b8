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

    /// What the inspector took it for, where it said so by the first bytes.
    public let kind: String?

    /// For whoever takes the file over.
    public let room: (any BodyRoom)?

    private let descriptor: Mutex<FileDescriptor?>
    private let onConsumed: Mutex<(@Sendable () -> Void)?>

    /// Takes ownership of the descriptor.
    init(
        _ descriptor: FileDescriptor, size: Int64, sha256: String, kind: String? = nil, room: (any BodyRoom)? = nil,
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
        // The body was not wanted: an error on closing changes nothing for anybody.
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

/// A body as it arrives: written and hashed on the way. Closes its file unless the body was finished.
final class BodyWriter {
    private var descriptor: FileDescriptor?
    private var hasher = SHA256()
    private(set) var size: Int64 = 0
    private let room: (any BodyRoom)?

    init(_ descriptor: FileDescriptor, room: (any BodyRoom)? = nil) {
        self.room = room
        self.descriptor = descriptor
    }

    deinit {
        // Of a body that nobody gets: an error on closing changes nothing.
        try? descriptor?.close()
    }

    /// Sets room aside for what is written next.
    ///
    /// - Returns: false where there is none yet; `onAnswer` is called then.
    /// - Throws: `Errno` of the room that there is.
    func makeRoom(for bytes: Int, onAnswer: @escaping @Sendable () -> Void) throws -> Bool {
        try room?.grow(by: bytes, onAnswer: onAnswer) ?? true
    }

    /// - Throws: `Errno` of write(2).
    func write(_ bytes: UnsafeRawBufferPointer) throws {
        guard let descriptor else { return }
        try descriptor.writeAll(bytes)
        hasher.update(bufferPointer: bytes)
        size += Int64(bytes.count)
    }

    /// Another descriptor of the file, for the caller to close.
    func duplicate() throws -> FileDescriptor {
        guard let descriptor else { throw Errno.badFileDescriptor }
        return try descriptor.duplicate()
    }

    /// - Throws: `Errno` of lseek(2).
    func finish(kind: String?, onConsumed: @escaping @Sendable () -> Void) throws -> BodyFile {
        guard let descriptor else { throw Errno.badFileDescriptor }
        try descriptor.seek(offset: 0, from: .start)
        self.descriptor = nil
        return BodyFile(
            descriptor, size: size, sha256: hexadecimal(hasher.finalize()), kind: kind, room: room,
            onConsumed: onConsumed)
    }
}

private func hexadecimal(_ digest: SHA256.Digest) -> String {
    func digit(_ value: UInt8) -> UInt8 { value + (value < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10) }
    return String(unsafeUninitializedCapacity: 2 * SHA256.Digest.byteCount) { text in
        for (place, byte) in digest.enumerated() {
            text[2 * place] = digit(byte >> 4)
            text[2 * place + 1] = digit(byte & 15)
        }
        return text.count
    }
}

func digest(of text: String) -> String { hexadecimal(SHA256.hash(data: Array(text.utf8))) }
