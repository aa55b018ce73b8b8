import CVips

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

    /// Clears the buffer of words that nobody has taken.
    static func forget() { vips_error_clear() }

    /// Whether there are words that nobody has taken: of a warning, if nothing has failed.
    static var hasWords: Bool { vips_error_buffer().pointee != 0 }

    /// A sentence that begins with ours and quotes libvips.
    func error(_ code: ImagingError.Code, _ what: String) -> ImagingError {
        ImagingError(code: code, message: "\(what): \(text)")
    }
}
