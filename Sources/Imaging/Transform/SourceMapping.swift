import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A regular file's bytes, mapped: no copy is made, no offset moves, and the caller's descriptor stays open.
///
/// The file must not shrink while it is mapped. Sources are complete before they get here, and never change.
struct SourceMapping: ~Copyable {
    private let bytes: UnsafeRawBufferPointer

    init(_ descriptor: FileDescriptor) throws(ImagingError) {
        bytes = try Self.map(descriptor.rawValue)
    }

    deinit {
        if let start = bytes.baseAddress { munmap(UnsafeMutableRawPointer(mutating: start), bytes.count) }
    }

    /// Lends the bytes. Nothing that reads them may outlive `body`.
    func lend<Result>(_ body: (UnsafeRawBufferPointer) throws(ImagingError) -> Result) throws(ImagingError) -> Result {
        try body(bytes)
    }

    private static func map(_ descriptor: CInt) throws(ImagingError) -> UnsafeRawBufferPointer {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure("The source cannot be read", errno) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw ImagingError(code: .transform, message: "The source is not a regular file.")
        }
        let count = Int(status.st_size)
        guard count > 0 else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        guard let start = mmap(nil, count, PROT_READ, MAP_PRIVATE, descriptor, 0), start != MAP_FAILED else {
            throw failure("The source cannot be mapped", errno)
        }
        return UnsafeRawBufferPointer(start: start, count: count)
    }

    private static func failure(_ what: String, _ code: CInt) -> ImagingError {
        ImagingError(code: .transform, message: "\(what): \(Errno(rawValue: code)).")
    }
}
