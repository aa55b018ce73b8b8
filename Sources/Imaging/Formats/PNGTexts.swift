/// What a PNG has compressed beside its pixels: profiles and texts, which unpack to a thousand times their size.
///
/// libpng gives up on them without a word, after some work; those of a file that is made to cost memory are left out.
enum PNGTexts {
    /// Bytes that all of a file's may unpack to. Profiles have up to some 4 MiB, and XMP little more.
    static let most = 32 << 20

    /// Reads the chunks by their lengths, and unpacks no more than ``most`` bytes, which takes some 50 ms.
    ///
    /// - Returns: where the chunk begins that is too much; nil where none is.
    static func excess(_ reader: ByteReader) -> Int? {
        var offset = ImageFormat.pngSignature.count
        var left = most
        while let length = reader.big(4, at: offset), reader.contains(offset, length: 12 + length) {
            let name = offset + 4
            if reader.has("iCCP", at: name) || reader.has("zTXt", at: name) || reader.has("iTXt", at: name) {
                let content = UnsafeRawBufferPointer(rebasing: reader.bytes[(name + 4)..<(name + 4 + length)])
                guard let start = compressed(in: content, isInternational: reader.has("iTXt", at: name)) else {
                    offset += 12 + length
                    continue
                }
                left -= Inflated(UnsafeRawBufferPointer(rebasing: content[start...]), most: left).count
                if left <= 0 { return offset }
            }
            if reader.has("IEND", at: name) { return nil }
            offset += 12 + length
        }
        return nil
    }

    /// Where zlib's data begin: behind a name and the method, and in iTXt behind a language and a translation.
    private static func compressed(in content: UnsafeRawBufferPointer, isInternational: Bool) -> Int? {
        guard let end = content.firstIndex(of: 0) else { return nil }
        guard isInternational else { return end + 2 <= content.count ? end + 2 : nil }
        guard end + 3 <= content.count, content[end + 1] == 1,
            let language = content[(end + 3)...].firstIndex(of: 0),
            let translation = content[(language + 1)...].firstIndex(of: 0)
        else { return nil }
        return translation + 1
    }
}
