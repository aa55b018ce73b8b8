internal import CJPEG

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
    static func objection(to bytes: UnsafeRawBufferPointer) -> ImagingError? {
        guard let damage = description(of: bytes) else { return nil }
        if JPEGScans.end(ByteReader(bytes)) >= bytes.count {
            return ImagingError(code: .truncated, message: "The jpeg ends before its picture does: \(damage)")
        }
        return ImagingError(code: .badImage, message: "The jpeg is damaged: \(damage)")
    }

    /// - Returns: libjpeg's words; nil where all data are there, for all that can be told. JPEG has no checksums.
    static func description(of bytes: UnsafeRawBufferPointer) -> String? {
        guard let base = bytes.bindMemory(to: UInt8.self).baseAddress else { return nil }
        var message = [CChar](repeating: 0, count: PW_JPEG_MESSAGE_MAX)
        guard pw_jpeg_is_damaged(base, bytes.count, &message) != 0 else { return nil }
        return String(decoding: message.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

/// Tells whether a decode is worth a second look, at no cost for the many that aren't.
///
/// libvips leaves the words of libjpeg's warnings in its error buffer though the call went well. All threads of a process
/// share it, and its own calls clear it, so it tells something where one thread alone uses libvips.
struct JPEGSuspicion {
    private let isAlone: Bool
    private let damages: CInt

    /// Begins before the decode.
    init(isAlone: Bool) {
        self.isAlone = isAlone
        VipsFailure.forget()
        damages = ImagingRuntime.damageCount
    }

    /// Whether libjpeg warned of pictures within the file. Where others use libvips too, nobody knows whose it was.
    var isOfParts: Bool { isAlone && ImagingRuntime.damageCount != damages }

    /// - Parameters:
    ///   - decoded: as the loader delivered it, and decoded by now.
    ///   - bytes: the whole file.
    func isFounded(after decoded: Picture, of bytes: UnsafeRawBufferPointer) -> Bool {
        if !isAlone || VipsFailure.hasWords { return true }
        let end = JPEGScans.end(ByteReader(bytes))
        // Without an end mark nobody knows which scans should have come.
        guard end < bytes.count else { return true }
        // All rows are there, and the decoder didn't come to the end mark.
        return decoded.bytesRead.map { end > $0 } ?? false
    }
}
