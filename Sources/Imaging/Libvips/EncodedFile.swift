internal import CVips
internal import SystemPackage

/// An encoded file in memory, its own or a library's.
final class EncodedFile {
    private let bytes: UnsafeRawBufferPointer
    private let free: (UnsafeRawPointer) -> Void

    /// - Parameter free: gives the memory back to whom it came from.
    init(owning bytes: UnsafeRawBufferPointer, free: @escaping (UnsafeRawPointer) -> Void) {
        self.bytes = bytes
        self.free = free
    }

    /// A copy.
    convenience init(_ bytes: [UInt8]) {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, bytes.count), alignment: 1)
        copy.copyBytes(from: bytes)
        self.init(owning: UnsafeRawBufferPointer(rebasing: copy[..<bytes.count])) { _ in copy.deallocate() }
    }

    deinit {
        if let start = bytes.baseAddress { free(start) }
    }

    var count: Int { bytes.count }

    /// Lends the bytes.
    func lend<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result,
    ) throws(Failure) -> Result {
        defer { withExtendedLifetime(self) {} }
        return try body(bytes)
    }

    func write(to descriptor: FileDescriptor) throws(VipsFailure) {
        do {
            try descriptor.writeAll(bytes)
        } catch {
            throw VipsFailure(text: "\(error)")
        }
    }

    /// Runs a libvips saver with a target in memory.
    convenience init(
        savedBy save: (UnsafeMutablePointer<VipsTarget>) -> CInt,
    ) throws(VipsFailure) {
        guard let target = vips_target_new_to_memory() else { throw VipsFailure.take() }
        defer { g_object_unref(target) }
        guard save(target) == 0 else { throw VipsFailure.take() }
        guard let blob = pw_vips_target_blob(target) else { throw VipsFailure.take() }
        var length = 0
        guard let start = vips_blob_get(blob, &length), length > 0 else {
            pw_vips_blob_unref(blob)
            throw VipsFailure(text: "the encoder wrote nothing")
        }
        self.init(owning: UnsafeRawBufferPointer(start: start, count: length)) { _ in pw_vips_blob_unref(blob) }
    }
}
