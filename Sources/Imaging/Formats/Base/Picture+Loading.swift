internal import CVips

/// How much smaller a decoder may deliver a picture, which saves most of its work.
enum DecodeScale: Equatable {
    case full
    /// libjpeg: 2, 4 or 8 times smaller in both axes.
    case jpeg(Int)
    /// libwebp: any factor below 1.
    case webp(Double)
}

extension Picture {
    /// Opens the first frame with the loader of `format` and no other: what a file claims to be in its first bytes is
    /// all it can be. Reads the header only; the pixels follow when they are asked for.
    ///
    /// - Parameters:
    ///   - bytes: must stay where they are as long as the picture, and what is made from it, is in use.
    ///   - isLenient: of a JPEG or PNG, what can't be decoded is left grey or transparent.
    convenience init(
        of bytes: UnsafeRawBufferPointer, as format: any FormatDefinition, scale: DecodeScale = .full,
        isLenient: Bool = false,
    ) throws(VipsFailure) {
        guard let source = format.source(bytes) else { throw VipsFailure.take() }
        try self.init(reading: source) { result in
            guard format.load(source, scale, isLenient: isLenient, &result) == 0 else { return -1 }
            return Self.complete(&result, bytes, format)
        }
    }

    /// - Parameter image: as it was opened; replaced by one that has all it should.
    private static func complete(
        _ image: inout UnsafeMutablePointer<VipsImage>?, _ bytes: UnsafeRawBufferPointer,
        _ format: any FormatDefinition,
    ) -> CInt {
        let opened = image
        image = nil
        do throws(VipsFailure) {
            let picture = try Picture { result in
                result = opened
                return 0
            }
            let completed = try format.completed(picture, bytes)
            image = completed.lend { UnsafeMutablePointer(g_object_ref($0).assumingMemoryBound(to: VipsImage.self)) }
            return 0
        } catch {
            return -1
        }
    }
}

/// A copy of a file with a few bytes changed, for libraries that stumble over what doesn't matter to the pixels.
final class PatchedBytes {
    /// For a format's own changes, before it is handed on.
    let memory: UnsafeMutableRawBufferPointer

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(memory) }

    init(_ file: UnsafeRawBufferPointer, _ more: [UInt8] = [], _ end: [UInt8] = []) {
        memory = .allocate(byteCount: max(1, file.count + more.count + end.count), alignment: 16)
        memory.copyMemory(from: file)
        if !more.isEmpty { memory[file.count...].copyBytes(from: more) }
        if !end.isEmpty { memory[(file.count + more.count)...].copyBytes(from: end) }
    }

    deinit { memory.deallocate() }
}
