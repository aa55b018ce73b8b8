internal import CJPEG
internal import Core
import ImageFiles

/// Finds damage in a JPEG's data with libjpeg.
///
/// libjpeg only warns of missing or wrong data and fills them with grey, and it also warns of harmless defects. libvips
/// passes on the first warning at most. So this reads the file once more.
enum JPEGDamage {
    /// Reads all scans, at an eighth of their size.
    ///
    /// Takes as long as decoding a thumbnail, and as much memory as libvips' decoder: all coefficients if there are
    /// several scans.
    ///
    /// - Returns: class `bad-image`, or `truncated` if the end mark is missing too.
    static func objection(to bytes: UnsafeRawBufferPointer) -> Failure? {
        guard let damage = description(of: bytes) else { return nil }
        if JPEGScans.end(ByteReader(bytes)) >= bytes.count {
            return Failure(.truncated, "The jpeg ends before its picture does: \(damage)")
        }
        return Failure(.badImage, "The jpeg is damaged: \(damage)")
    }

    /// - Returns: libjpeg's message; nil if no damage was found. JPEG has no checksums.
    static func description(of bytes: UnsafeRawBufferPointer) -> String? {
        guard let base = bytes.bindMemory(to: UInt8.self).baseAddress else { return nil }
        var message = [CChar](repeating: 0, count: PW_JPEG_MESSAGE_MAX)
        guard pw_jpeg_is_damaged(base, bytes.count, &message) != 0 else { return nil }
        return String(decoding: message.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Whether a decoded file needs a second reading; costs nothing for the many that do not.
    ///
    /// - Parameters:
    /// - decoded: the loader's picture, decoded by now.
    ///   - bytes: the whole file.
    static func isSuspected(
        after watch: DecodeWatch, _ decoded: Picture, of bytes: UnsafeRawBufferPointer,
    ) -> Bool {
        if watch.mayHaveWarned { return true }
        let end = JPEGScans.end(ByteReader(bytes))
        // Without an end mark the number of scans is unknown.
        guard end < bytes.count else { return true }
        // All rows are there, and the decoder did not reach the end mark.
        return decoded.bytesRead.map { end > $0 } ?? false
    }
}
