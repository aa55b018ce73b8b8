/// Whether what the first directory of a TIFF points at lies within the file.
struct TIFFStructure {
    private let reader: ByteReader
    private let directory: TIFFDirectory

    init(_ reader: ByteReader) {
        self.reader = reader
        directory = TIFFDirectory(reader)
    }

    var endsEarly: Bool {
        directory.endsEarly
            || directory.fields.contains { !reader.contains($0.offset, length: $0.size * $0.count) } || pixelsEndEarly
    }

    /// Strips (273, 279) or tiles (324, 325): offsets and lengths, side by side.
    private var pixelsEndEarly: Bool {
        for (offsets, lengths) in [(273, 279), (324, 325)] {
            guard let offsets = directory.field(offsets), let lengths = directory.field(lengths) else { continue }
            for index in 0..<min(offsets.count, lengths.count) {
                guard let offset = directory.value(index, of: offsets), let length = directory.value(index, of: lengths)
                else { continue }
                if !reader.contains(offset, length: length) { return true }
            }
        }
        return false
    }
}
