import CVips
internal import Core
import ImageFiles

/// A libvips call that returned −1, with its message and without a class; the caller decides the class.
struct VipsFailure: Error {
    let text: String

    /// Takes libvips' message. All threads share its error buffer, so it is copied and cleared in one call.
    /// https://www.libvips.org/API/8.14/libvips-VipsError.html#vips-error-buffer-copy
    static func take() -> VipsFailure {
        let buffer = vips_error_buffer_copy()
        defer { g_free(buffer) }
        let text = buffer.map { String(cString: $0) } ?? ""
        return VipsFailure(text: text.isEmpty ? "the decoder gives no reason" : text)
    }

    /// Clears libvips' error buffer.
    static func forget() { vips_error_clear() }

    /// Whether libvips' error buffer has text. If no call has failed, it is a warning.
    static var hasMessage: Bool { vips_error_buffer().pointee != 0 }

    /// A sentence with our own beginning that quotes libvips. If libvips had no memory, the picture is not at fault.
    func error(_ code: FailureClass, _ what: String) -> Failure {
        let isShort = (code == .badImage || code == .truncated) && text.contains("out of memory")
        return isShort ? MemoryShortage.failure("\(what): it takes memory that") : Failure(code, "\(what): \(reason)")
    }

    /// The last line, without the name of libvips' operation before it.
    private var reason: Substring {
        let line = text.split(separator: "\n").last ?? ""
        guard let colon = line.firstIndex(of: ":"),
            line[..<colon].allSatisfy({ $0 == "_" || $0.isLetter || $0.isNumber })
        else { return line }
        return line[colon...].dropFirst().drop { $0 == " " }
    }
}

/// Notices warnings of libraries while one picture is decoded.
///
/// libvips leaves libjpeg's warnings in its error buffer although the call succeeded. All threads of a process share
/// the buffer, and libvips' own calls clear it, so it is reliable only if a single thread uses libvips.
struct DecodeWatch {
    private let isAlone: Bool
    private let damages: CInt

    /// Begins before the decode.
    ///
    /// - Parameter isAlone: whether no other thread of this process uses libvips.
    init(isAlone: Bool) {
        self.isAlone = isAlone
        VipsFailure.forget()
        damages = Self.damageCount
    }

    /// Whether there was a warning, or another thread may have had one.
    var mayHaveWarned: Bool { !isAlone || VipsFailure.hasMessage }

    /// Whether libjpeg warned of a picture inside the file. If other threads use libvips too, this is unknown, and
    /// false.
    var hasDamagedParts: Bool { isAlone && Self.damageCount != damages }

    /// How often JPEG data inside another file, such as a TIFF, were damaged: libtiff only warns of it.
    private static var damageCount: CInt { pw_vips_load_count(counter) }

    /// Counted by libvips' threads, until the process ends.
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

/// Finds out whether a decoder failed for lack of memory, which libraries hardly distinguish from damage.
///
/// Called after the decoder has released its memory: if the memory that it needs cannot be allocated now either, there
/// was a lack of it.
enum MemoryShortage {
    /// - Parameters:
    ///   - each: bytes of a decoded pixel.
    ///   - cost: bytes that the decoder holds besides.
    /// - Returns: class `too-many-pixels`, with the number of bytes; nil if there is enough memory.
    static func objection(_ format: String, _ size: PixelSize, each: Int, cost: Int) -> Failure? {
        let pixels = size.pixels.multipliedReportingOverflow(by: each)
        let total = pixels.partialValue.addingReportingOverflow(cost)
        let bytes = pixels.overflow || total.overflow ? Int.max : total.partialValue
        guard !isRoom(for: bytes) else { return nil }
        return failure(
            "To decode the \(format) of \(size.width)×\(size.height) pixels takes some \(bytes >> 20) MiB, which")
    }

    /// - Parameter what: the sentence's beginning, before 'the process's limit of memory doesn't allow'.
    static func failure(_ what: String) -> Failure {
        Failure(
            .tooManyPixels,
            "\(what) the process's limit of memory doesn't allow. No option raises it; a lower --max-pixels refuses such "
                + "pictures by their headers.")
    }

    private static func isRoom(for bytes: Int) -> Bool {
        // The memory is not touched, so none is used; but an allocation beyond `RLIMIT_DATA` fails.
        guard bytes < 1 << 46,
            let place = mmap(nil, max(1, bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            place != MAP_FAILED
        else { return false }
        munmap(place, max(1, bytes))
        return true
    }
}
