internal import CVips
import ImageFiles
internal import SystemPackage

/// An encoded file in memory. This object or a library owns the memory.
final class EncodedFile {
    private let bytes: UnsafeRawBufferPointer
    private let free: (UnsafeRawPointer) -> Void
    /// Our own bytes before and after the library's.
    private let head: [UInt8]
    private let tail: [UInt8]

    /// - Parameter free: returns the memory to its owner.
    init(
        owning bytes: UnsafeRawBufferPointer, head: [UInt8] = [], tail: [UInt8] = [],
        free: @escaping (UnsafeRawPointer) -> Void,
    ) {
        self.bytes = bytes
        self.head = head
        self.tail = tail
        self.free = free
    }

    /// A copy.
    convenience init(_ bytes: [UInt8]) {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, bytes.count), alignment: 1)
        copy.copyBytes(from: bytes)
        self.init(owning: UnsafeRawBufferPointer(rebasing: copy[..<bytes.count])) { _ in copy.deallocate() }
    }

    /// Another file with `head` in place of its first `count` bytes, and `tail` in place of its last `end`.
    convenience init(
        _ file: EncodedFile, replacingFirst count: Int = 0, by head: [UInt8] = [], last end: Int = 0, tail: [UInt8] = [],
    ) {
        let kept = file.bytes[count..<(file.bytes.count - end)]
        self.init(owning: UnsafeRawBufferPointer(rebasing: kept), head: head, tail: tail) { _ in
            withExtendedLifetime(file) {}
        }
    }

    deinit {
        if let start = bytes.baseAddress { free(start) }
    }

    var count: Int { head.count + bytes.count + tail.count }

    /// Lends the bytes that a library made.
    func lend<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result,
    ) throws(Failure) -> Result {
        defer { withExtendedLifetime(self) {} }
        return try body(bytes)
    }

    func write(to descriptor: FileDescriptor) throws(VipsFailure) {
        do {
            try descriptor.writeAll(head)
            try descriptor.writeAll(bytes)
            try descriptor.writeAll(tail)
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
