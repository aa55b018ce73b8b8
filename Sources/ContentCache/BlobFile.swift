internal import Glibc
public import Synchronization
public import SystemPackage

/// An open file of the cache: a new one without a name, or a published blob for reading. Closed when let go:
/// code that uses the descriptor alone keeps the file itself for as long (`withExtendedLifetime`).
public final class BlobFile: Sendable {
    public let descriptor: FileDescriptor
    /// The disk space that is set aside for it; given back when the file is closed, unless the index counts it by then.
    public let reservation = Mutex<(any BlobReservation)?>(nil)

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

    /// Fills a new file with its first bytes.
    public func copy(to copy: BlobFile, size: Int64) throws(CacheError) {
        var offset: off_t = 0
        while offset < size {
            let count = sendfile(copy.descriptor.rawValue, descriptor.rawValue, &offset, Int(size) - offset)
            if count > 0 || (count < 0 && errno == EINTR) { continue }
            throw CacheError(count < 0 ? Errno(rawValue: errno) : .ioError, "A blob can't be copied")
        }
    }

    deinit {
        // The data was synced, or is thrown away on purpose; a failed close changes neither.
        try? descriptor.close()
    }
}

/// Disk space that is set aside for a file as long as it is open.
public protocol BlobReservation: AnyObject, Sendable {}
