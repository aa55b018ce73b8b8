#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Whether a decoder may have failed for want of memory, which libraries hardly tell from damage.
///
/// Asked once they have given back what they held: what they needed at once is then to be had, or it never was.
enum MemoryShortage {
    /// - Parameter cost: bytes that the decoder holds besides what it delivers.
    /// - Returns: class `too-many-pixels`, with the number; nil where there is room.
    static func objection(_ format: ImageFormat, _ size: PixelSize, cost: Int) -> ImagingError? {
        // What is made of it; libvips has all of a WebP in a picture of its own as well.
        let pixels = size.pixels.multipliedReportingOverflow(by: format == .webp ? 8 : 4)
        let total = pixels.partialValue.addingReportingOverflow(cost)
        let bytes = pixels.overflow || total.overflow ? Int.max : total.partialValue
        guard !isRoom(for: bytes) else { return nil }
        return ImagingError(
            code: .tooManyPixels,
            message:
                "To decode the \(format.rawValue) of \(size.width)×\(size.height) pixels takes some \(bytes >> 20) MiB, "
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
