internal import CVips
import ImageFiles

/// An EXIF block with only Artist and Copyright.
///
/// libvips makes one from the single fields for JPEG, but not for every format. TIFF 6.0, section 2: a header, one
/// directory of ASCII entries, their text. https://www.cipa.jp/std/documents/e/DC-X008-Translation-2019-E.pdf
struct CopyrightBlock {
    private var entries: [(tag: UInt16, text: [UInt8])] = []

    /// By libvips' names for the fields.
    static let tags: [(name: String, tag: UInt16)] = [("exif-ifd0-Artist", 0x013B), ("exif-ifd0-Copyright", 0x8298)]

    /// - Parameter field: libvips' value of a field: the text, and then in brackets the text with its type and length.
    init?(_ field: (String) -> String?) {
        for (name, tag) in Self.tags {
            guard let text = field(name).flatMap(Self.text), !text.isEmpty else { continue }
            entries.append((tag, Array(text.utf8) + [0]))
        }
        if entries.isEmpty { return nil }
    }

    /// Returns `Ann` for `Ann (Ann, ASCII, 4 components, 4 bytes)`. For a copyright libexif repeats more than the text:
    /// `Ann (Ann (Photographer) - [None] (Editor), ASCII, …)`.
    private static func text(_ field: String) -> String? {
        let bytes = Array(field.utf8)
        let mark = Array(", ASCII, ".utf8)
        guard let kind = bytes.indices.dropLast(mark.count).last(where: { bytes[$0...].starts(with: mark) }) else {
            return nil
        }
        let opening = Array(" (".utf8)
        let splits = (0..<max(0, kind - 1)).filter { bytes[$0...].starts(with: opening) }
        let same = splits.first { bytes[..<$0] == bytes[($0 + 2)..<kind] }
        let longer = splits.first { bytes[($0 + 2)..<kind].starts(with: bytes[..<$0]) }
        guard let split = same ?? longer else { return nil }
        // libexif 0.6.25 ends a copyright with a space.
        let end = bytes[..<split].lastIndex { $0 != 32 }.map { $0 + 1 } ?? 0
        return String(decoding: bytes[..<end], as: UTF8.self)
    }

    /// For formats without tags: a line for each field.
    var comment: String {
        entries.map { entry in
            let name = entry.tag == 0x013B ? "Artist" : "Copyright"
            return "\(name): \(String(decoding: entry.text.dropLast(), as: UTF8.self))"
        }.joined(separator: "\n")
    }

    /// With the six bytes before it that mark an EXIF block.
    var bytes: [UInt8] {
        var directory = little(UInt16(entries.count))
        var texts: [UInt8] = []
        let start = 8 + 2 + 12 * entries.count + 4
        for entry in entries {
            // Four bytes or fewer are stored in the entry itself.
            let isShort = entry.text.count <= 4
            let place =
                isShort ? entry.text + [0, 0, 0, 0].dropLast(entry.text.count) : little(UInt32(start + texts.count))
            directory += little(entry.tag) + little(UInt16(2)) + little(UInt32(entry.text.count)) + place
            if !isShort { texts += entry.text }
        }
        return Array("Exif\0\0II".utf8) + [0x2A, 0, 8, 0, 0, 0] + directory + [0, 0, 0, 0] + texts
    }

    private func little<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        withUnsafeBytes(of: number.littleEndian) { Array($0) }
    }
}

extension Picture {
    /// A field that libvips holds as text.
    func text(_ name: String) -> String? {
        lend { image in
            var value: UnsafePointer<CChar>?
            guard vips_image_get_typeof(image, name) != 0, vips_image_get_string(image, name, &value) == 0 else {
                vips_error_clear()
                return nil
            }
            return value.map { String(cString: $0) }
        }
    }

    func set(exif block: [UInt8]) {
        lend { image in
            block.withUnsafeBytes { vips_image_set_blob_copy(image, VIPS_META_EXIF_NAME, $0.baseAddress, $0.count) }
        }
    }

    /// Its EXIF block, without fields of ``CopyrightBlock/tags`` that were removed from the picture.
    var exifBlock: ExifBlock? {
        let gone = Set(CopyrightBlock.tags.filter { text($0.name) == nil }.map(\.tag))
        return withBlob(VIPS_META_EXIF_NAME) { ExifBlock($0) { !gone.contains($0) } } ?? nil
    }
}
