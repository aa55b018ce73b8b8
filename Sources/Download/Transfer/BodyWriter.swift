import Core
import Hashing
import SystemPackage

/// Writes and hashes a body as it arrives. Closes its file unless the body was finished.
final class BodyWriter {
    private var descriptor: FileDescriptor?
    private let hasher = SHA256()
    private(set) var size: Int64 = 0
    private let reservation: (any SpaceReservation)?

    init(_ descriptor: FileDescriptor, reservation: (any SpaceReservation)? = nil) {
        self.reservation = reservation
        self.descriptor = descriptor
    }

    deinit {
        // Best effort: the body is discarded, so an error on closing changes nothing.
        try? descriptor?.close()
    }

    /// Reserves space for the bytes that are written next.
    ///
    /// - Returns: false if there is no space yet; `onAnswer` is called when there is.
    /// - Throws: the error of the reservation.
    func reserve(_ bytes: Int, onAnswer: @escaping @Sendable () -> Void) throws -> Bool {
        try reservation?.grow(by: bytes, onAnswer: onAnswer) ?? true
    }

    /// - Throws: `Errno` of write(2).
    func write(_ bytes: UnsafeRawBufferPointer) throws {
        guard let descriptor else { return }
        try descriptor.writeAll(bytes)
        hasher.update(bytes)
        size += Int64(bytes.count)
    }

    /// A duplicate descriptor of the file; the caller closes it.
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
            descriptor, size: size, sha256: String(hexadecimal: hasher.finish()), kind: kind, reservation: reservation,
            onConsumed: onConsumed)
    }
}
