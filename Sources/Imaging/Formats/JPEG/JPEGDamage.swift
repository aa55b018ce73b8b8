internal import CJPEG
internal import Core

/// What libjpeg finds wrong with a JPEG's data.
///
/// libjpeg only warns of data that are missing or wrong, and fills up with grey; it warns of harmless things just so.
/// libvips passes on the words of the first warning at the most, so who wants to know reads the file once more.
enum JPEGDamage {
    /// Reads all scans, at an eighth of their size.
    ///
    /// Takes as long as decoding a thumbnail, and as much memory as libvips' decoder: all coefficients where there are
    /// several scans.
    ///
    /// - Returns: class `bad-image`, or `truncated` where the file lacks its end mark as well.
    static func objection(to bytes: UnsafeRawBufferPointer) -> Failure? {
        guard let damage = description(of: bytes) else { return nil }
        if JPEGScans.end(ByteReader(bytes)) >= bytes.count {
            return Failure(.truncated, "The jpeg ends before its picture does: \(damage)")
        }
        return Failure(.badImage, "The jpeg is damaged: \(damage)")
    }

    /// - Returns: libjpeg's words; nil where all data are there, for all that can be told. JPEG has no checksums.
    static func description(of bytes: UnsafeRawBufferPointer) -> String? {
        guard let base = bytes.bindMemory(to: UInt8.self).baseAddress else { return nil }
        var message = [CChar](repeating: 0, count: PW_JPEG_MESSAGE_MAX)
        guard pw_jpeg_is_damaged(base, bytes.count, &message) != 0 else { return nil }
        return String(decoding: message.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Whether a decode is worth a second look, at no cost for the many that aren't.
    ///
    /// - Parameters:
    ///   - decoded: as the loader delivered it, and decoded by now.
    ///   - bytes: the whole file.
    static func isSuspected(
        after watch: DecodeWatch, _ decoded: Picture, of bytes: UnsafeRawBufferPointer,
    ) -> Bool {
        if watch.mayHaveWarned { return true }
        let end = JPEGScans.end(ByteReader(bytes))
        // Without an end mark it can't be told which scans should have come.
        guard end < bytes.count else { return true }
        // All rows are there, and the decoder didn't come to the end mark.
        return decoded.bytesRead.map { end > $0 } ?? false
    }
}
