import ImageFiles

extension HEIFItems {
    /// libheif reads all items when it opens a file, and fails if one lies outside of it. This makes EXIF and XMP
    /// empty.
    static func hidden(in file: UnsafeRawBufferPointer) -> PatchedBytes {
        let copy = PatchedBytes(file)
        for place in HEIFItems(ByteReader(copy.bytes))?.placesOfMetadata ?? [] {
            for offset in place { copy.memory[offset] = 0 }
        }
        return copy
    }

    /// Whether a movie or one of its tracks has metadata of its own: a `meta` or `udta` box.
    private static func haveTracksExtras(_ reader: ByteReader) -> Bool {
        guard let movie = Boxes.box("moov", in: 0..<reader.count, reader) else { return false }
        var found = false
        Boxes.each(in: movie, reader) { offset, content in
            found = reader.has("udta", at: offset) || reader.has("meta", at: offset)
            if reader.has("trak", at: offset) {
                found = Boxes.box("udta", in: content, reader) != nil || Boxes.box("meta", in: content, reader) != nil
            }
            return !found
        }
        return found
    }

    /// As ``FormatDefinition/hasExtras(_:_:)``.
    static func areExtra(in reader: ByteReader, _ policy: MetadataPolicy) -> Bool {
        if Boxes.areThere(reader, besides: ["ftyp", "meta", "mdat", "moov"]) { return true }
        if haveTracksExtras(reader) { return !policy.keepsAll }
        guard !policy.keepsAll, let meta = Boxes.box("meta", in: 0..<reader.count, reader) else { return false }
        // A full box begins with version and flags.
        let parts = min(meta.lowerBound + 4, meta.upperBound)..<meta.upperBound
        guard let list = Boxes.box("iinf", in: parts, reader) else { return false }
        let first = list.lowerBound + (reader.byte(at: list.lowerBound) == 0 ? 6 : 8)
        guard first <= list.upperBound else { return false }
        var found = false
        Boxes.each(in: first..<list.upperBound, reader) { _, content in
            let start = content.lowerBound
            // After version, flags, the item's id and its protection.
            let type = start + (reader.byte(at: start) == 3 ? 10 : 8)
            found = ["Exif", "mime", "uri "].contains { reader.has($0, at: type) }
            return !found
        }
        return found
    }
}
