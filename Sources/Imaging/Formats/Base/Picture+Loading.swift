internal import CVips
import ImageFiles

/// The scale at which a decoder may deliver a picture, which saves most of its work.
enum DecodeScale: Equatable {
    case full
    /// libjpeg: 2, 4 or 8 times smaller in both axes.
    case jpeg(Int)
    /// libwebp: any factor below 1.
    case webp(Double)
}

extension Picture {
    /// Opens the first frame with the loader of `format` and no other: the file's signature selects the decoder. Reads
    /// only the header; pixels are decoded when they are read.
    ///
    /// - Parameters:
    ///   - bytes: must stay valid as long as the picture, or one made from it, is used.
    ///   - isLenient: whether pixels of a JPEG or PNG that cannot be decoded are left grey or transparent.
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

    /// - Parameter image: the opened image; replaced by a completed one.
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

/// A copy of a file with a few bytes changed, for libraries that fail on parts without influence on the pixels.
final class PatchedBytes {
    /// A format changes it before anything else uses the copy.
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
