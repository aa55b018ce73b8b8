internal import Glibc
public import Synchronization
public import SystemPackage

/// An open file of the cache: a new one without a name, or a published blob for reading. The last reference closes it,
/// so code that uses only the descriptor keeps the file alive with `withExtendedLifetime`.
public final class BlobFile: Sendable {
    public let descriptor: FileDescriptor
    /// The disk space that is reserved for the file. Closing the file releases it, unless the index counts the file by
    /// then.
    public let reservation = Mutex<(any BlobReservation)?>(nil)

    /// Whether its bytes are in memory rather than on a disk.
    public let isInMemory: Bool

    /// Takes over `descriptor`.
    public init(owning descriptor: FileDescriptor, isInMemory: Bool = false) {
        self.descriptor = descriptor
        self.isInMemory = isInMemory
    }

    /// All of the file's bytes, independent of its position. For small files.
    public func contents() throws -> [UInt8] {
        let count = Int(try descriptor.seek(offset: 0, from: .end))
        return try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let rest = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...])
                let bytes = try descriptor.read(fromAbsoluteOffset: Int64(filled), into: rest)
                guard bytes > 0 else { throw Errno.ioError }
                filled += bytes
            }
        }
    }

    /// Copies the first `size` bytes to a new file.
    public func copy(to copy: BlobFile, size: Int64) throws(CacheError) {
        var offset: off_t = 0
        while offset < size {
            let count = sendfile(copy.descriptor.rawValue, descriptor.rawValue, &offset, Int(size) - offset)
            if count > 0 || (count < 0 && errno == EINTR) { continue }
            throw CacheError(count < 0 ? Errno(rawValue: errno) : .ioError, "A blob can't be copied")
        }
    }

    deinit {
        // The data was synced, or is discarded on purpose; a failed close changes neither.
        try? descriptor.close()
    }
}

/// Disk space that is reserved for a file as long as it is open.
public protocol BlobReservation: AnyObject, Sendable {}
