public import Synchronization
public import SystemPackage

/// An open file of the cache: a new one without a name, or a published blob for reading. Closed when let go:
/// whoever uses nothing but the descriptor keeps the file itself for as long (`withExtendedLifetime`).
public final class BlobFile: Sendable {
    public let descriptor: FileDescriptor
    /// Something that is to live as long as the file is open.
    public let companion = Mutex<(any Sendable)?>(nil)

    /// Takes over `descriptor`.
    public init(owning descriptor: FileDescriptor) {
        self.descriptor = descriptor
    }

    /// All of its bytes, whatever its position. For small files.
    public func contents() throws -> [UInt8] {
        let count = Int(try descriptor.seek(offset: 0, from: .end))
        return try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            filled = try descriptor.read(fromAbsoluteOffset: 0, into: UnsafeMutableRawBufferPointer(buffer))
        }
    }

    deinit {
        // The data was synced, or is thrown away on purpose; a failed close changes neither.
        try? descriptor.close()
    }
}
