public import SystemPackage

/// An open file of the cache: a new one without a name, or a published blob for reading. Closed when let go.
public final class BlobFile: Sendable {
    public let descriptor: FileDescriptor

    /// Takes over `descriptor`.
    public init(owning descriptor: FileDescriptor) {
        self.descriptor = descriptor
    }

    deinit {
        // The data was synced, or is thrown away on purpose; a failed close changes neither.
        try? descriptor.close()
    }
}
