import CVips
internal import Core

/// A libvips call that returned −1: its words, of no class yet. Only where the call stands decides the class.
struct VipsFailure: Error {
    let text: String

    /// Takes libvips' words: its error buffer is shared by all threads, so it is copied and cleared in one call.
    /// https://www.libvips.org/API/8.14/libvips-VipsError.html#vips-error-buffer-copy
    static func take() -> VipsFailure {
        let buffer = vips_error_buffer_copy()
        defer { g_free(buffer) }
        let text = buffer.map { String(cString: $0) } ?? ""
        return VipsFailure(text: text.isEmpty ? "libvips gave no reason" : text)
    }

    /// Clears libvips' buffer of messages.
    static func forget() { vips_error_clear() }

    /// Whether there are messages in libvips' buffer: of a warning, if nothing has failed.
    static var hasWords: Bool { vips_error_buffer().pointee != 0 }

    /// A sentence that begins with ours and quotes libvips.
    func error(_ code: FailureClass, _ what: String) -> Failure {
        Failure(code, "\(what): \(text)")
    }
}

/// Notices what libraries only warn of while one picture is decoded.
///
/// libvips leaves the words of libjpeg's warnings in its error buffer though the call went well. All threads of a process
/// share it, and its own calls clear it, so it tells something where one thread alone uses libvips.
struct DecodeWatch {
    private let isAlone: Bool
    private let damages: CInt

    /// Begins before the decode.
    ///
    /// - Parameter isAlone: no other thread of this process uses libvips.
    init(isAlone: Bool) {
        self.isAlone = isAlone
        VipsFailure.forget()
        damages = Self.damageCount
    }

    /// Whether there was a warning, or another thread may have had one.
    var mayHaveWarned: Bool { !isAlone || VipsFailure.hasWords }

    /// Whether libjpeg warned of a picture within the file. Where others use libvips too, it can't be told whose it was.
    var hasDamagedParts: Bool { isAlone && Self.damageCount != damages }

    /// How often a picture within another file, such as a TIFF, was found to be damaged JPEG data: libtiff only warns.
    private static var damageCount: CInt { pw_vips_load_count(counter) }

    /// Counted by libvips' threads, for as long as the process lives.
    nonisolated(unsafe) static let counter: UnsafeMutablePointer<CInt> = {
        let count = UnsafeMutablePointer<CInt>.allocate(capacity: 1)
        count.initialize(to: 0)
        return count
    }()
}

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Whether a decoder may have failed for want of memory, which libraries hardly tell from damage.
///
/// Asked once they have given back what they held: what they needed at once is then to be had, or it never was.
enum MemoryShortage {
    /// - Parameters:
    ///   - each: bytes of a pixel, as it is delivered.
    ///   - cost: bytes that the decoder holds besides.
    /// - Returns: class `too-many-pixels`, with the number; nil where there is room.
    static func objection(_ format: String, _ size: PixelSize, each: Int, cost: Int) -> Failure? {
        let pixels = size.pixels.multipliedReportingOverflow(by: each)
        let total = pixels.partialValue.addingReportingOverflow(cost)
        let bytes = pixels.overflow || total.overflow ? Int.max : total.partialValue
        guard !isRoom(for: bytes) else { return nil }
        return Failure(
            .tooManyPixels,
            "To decode the \(format) of \(size.width)×\(size.height) pixels takes some \(bytes >> 20) MiB, "
                + "which the process's limit of memory doesn't allow.")
    }

    private static func isRoom(for bytes: Int) -> Bool {
        // Nothing is touched, so nothing is used; but what `RLIMIT_DATA` would refuse is refused.
        guard bytes < 1 << 46,
            let place = mmap(nil, max(1, bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            place != MAP_FAILED
        else { return false }
        munmap(place, max(1, bytes))
        return true
    }
}
