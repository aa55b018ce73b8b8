import TestSupport

/// Metadata that can't be right, and files that carry them.
enum BrokenMetadata {
    typealias Named = (name: String, bytes: [UInt8])

    private static let little: [UInt8] = Array("II".utf8) + [42, 0, 8, 0, 0, 0]

    private static func entry(_ tag: Int, _ type: Int, _ count: Int, _ value: Int) -> [UInt8] {
        TestImages.little(tag, 2) + TestImages.little(type, 2) + TestImages.little(count, 4)
            + TestImages.little(value, 4)
    }

    private static func directory(_ entries: [[UInt8]], next: Int = 0) -> [UInt8] {
        little + TestImages.little(entries.count, 2) + entries.flatMap { $0 } + TestImages.little(next, 4)
    }

    /// EXIF blocks, without the six bytes before them that a JPEG has.
    static let exif: [Named] = orientations + others

    private static let others: [Named] = [
        ("another byte order", Array("IM".utf8) + directory([entry(0x112, 3, 1, 6)]).dropFirst(2)),
        ("no byte order", Array("XX".utf8) + directory([entry(0x112, 3, 1, 6)]).dropFirst(2)),
        ("big instead of little", Array("MM".utf8) + directory([entry(0x112, 3, 1, 6)]).dropFirst(2)),
        ("no 42", Array("II".utf8) + [43, 0] + directory([entry(0x112, 3, 1, 6)]).dropFirst(4)),
        ("a directory in the header", Array("II".utf8) + [42, 0, 0, 0, 0, 0, 1, 0]),
        ("a directory at the last byte", Array("II".utf8) + [42, 0, 9, 0, 0, 0, 1]),
        ("a next directory that is the same", directory([entry(0x112, 3, 1, 1)], next: 8)),
        ("a next directory outside", directory([entry(0x112, 3, 1, 1)], next: 0x7FFF_FFFF)),
        (
            "directories that point at each other",
            directory([entry(0x8769, 4, 1, 8), entry(0x8825, 4, 1, 8), entry(0xA005, 4, 1, 8)], next: 8)
        ),
        ("a camera's directory outside", directory([entry(0x8769, 4, 1, 0xFFFF_FFFF)])),
        ("a camera's directory that is text", directory([entry(0x8769, 2, 4, 0x4141_4141)])),
        ("a thumbnail outside", directory([entry(0x201, 4, 1, 0xFFFF_FF00), entry(0x202, 4, 1, 0x7FFF_FFFF)])),
        ("values of no length", directory((0..<20).map { entry(0x10E + $0, 2, 0, 0) })),
        ("values of the most there can be", directory((0..<20).map { entry(0x10E + $0, 12, 0xFFFF_FFFF, 8) })),
        ("types that there aren't", directory((0..<20).map { entry(0x10E + $0, 13 + $0, 1, 8) })),
        ("no types", directory((0..<20).map { entry(0x10E + $0, 0, 1, 8) })),
        ("the same tag again and again", directory((0..<200).map { entry(0x13B, 2, 4, $0) })),
        (
            "fractions of nothing",
            directory([entry(0x11A, 5, 1, 0), entry(0x11B, 5, 1, 38)]) + Array(repeating: 0, count: 8)
        ),
        ("a maker's note of everything", directory([entry(0x927C, 7, 0x7FFF_FFFF, 0)])),
        ("text that isn't", directory([entry(0x13B, 2, 40, 26)]) + (0..<40).map { UInt8(0x80 + $0 * 3) }),
        ("cut within an entry", Array(directory([entry(0x112, 3, 1, 1), entry(0x13B, 2, 4, 0)]).dropLast(11))),
    ]

    private static let orientations: [Named] =
        [0, 9, 255, 65_535].map {
            ("orientation \($0)", directory([entry(0x112, 3, 1, $0)]))
        }
        + [1, 2, 4, 5, 7, 9, 12].map { type in
            ("an orientation of type \(type)", directory([entry(0x112, type, 1, 0x7FFF_FFFF)]))
        } + [("eight orientations", directory([entry(0x112, 3, 8, 0x7FFF_FFFF)]))]

    static let xmp: [Named] = [
        ("no XMP", []), ("one byte of XMP", [0]), ("XMP without an end", Array("<x:xmpmeta><rdf:RDF".utf8)),
        ("bytes for XMP", (0..<200).map { UInt8(255 - $0) }),
        ("XMP with zeros", Array("<x:xmpmeta>\0\0</x:xmpmeta>".utf8)),
    ]

    /// Of 128 bytes and tags.
    private static let profile: [UInt8] = TestImages.profile(
        primaries: [[0.4361, 0.2225, 0.0139], [0.3851, 0.7169, 0.0971], [0.1431, 0.0606, 0.7141]]
    ) { $0 }

    static let profiles: [Named] =
        [0, 1, 4, 36, 127, 128, 131, 132, 140, 200].map { ("a profile of \($0) bytes", Array(profile.prefix($0))) } + [
            ("a profile that says it is larger", set([0x7F, 0xFF, 0xFF, 0xFF], at: 0)),
            ("a profile that says it is empty", set([0, 0, 0, 0], at: 0)),
            ("a profile of another signature", set(Array("XXXX".utf8), at: 36)),
            ("a profile of inks", set(Array("CMYK".utf8), at: 16)),
            ("a profile of grey", set(Array("GRAY".utf8), at: 16)),
            ("a profile of no colours", set([0, 0, 0, 0], at: 16)),
            ("a profile of a named class", set(Array("nmcl".utf8), at: 12)),
            ("a profile to no colours", set(Array("XXXX".utf8), at: 20)),
            ("a profile of billions of tags", set([0xFF, 0xFF, 0xFF, 0xFF], at: 128)),
            ("a profile of no tags", set([0, 0, 0, 0], at: 128)),
            ("a profile whose tags are outside", set([0xFF, 0xFF, 0xFF, 0xF0], at: 136)),
            ("a profile whose tags have no end", set([0xFF, 0xFF, 0xFF, 0xF0], at: 140)),
            ("a profile of zeros", [UInt8](repeating: 0, count: 300)),
            ("a profile of another version", set([99, 99, 99, 99], at: 8)),
        ]

    private static func set(_ bytes: [UInt8], at offset: Int) -> [UInt8] {
        var changed = profile
        changed.replaceSubrange(offset..<(offset + bytes.count), with: bytes)
        return changed
    }

    /// Photoshop's blocks, which hold IPTC.
    static let photoshop: [Named] = [
        ("no block", []), ("a name only", Array("8BIM".utf8)),
        ("a block of the most there can be", Array("8BIM".utf8) + [4, 4, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]),
        ("a block whose name goes on", Array("8BIM".utf8) + [4, 4, 255, 65, 65]),
        ("IPTC of no length", Array("8BIM".utf8) + [4, 4, 0, 0, 0, 0, 0, 0]),
        ("IPTC that goes on", Array("8BIM".utf8) + [4, 4, 0, 0, 0, 0, 0, 8, 0x1C, 2, 5, 0x80, 4, 0x7F, 0xFF, 0xFF]),
        ("blocks of another kind", Array("XXXX".utf8) + (0..<60).map { UInt8($0) }),
    ]
}

/// A small picture of a format, with metadata.
enum Carrier {
    static func segment(_ marker: UInt8, _ payload: [UInt8], length: Int? = nil) -> [UInt8] {
        [0xFF, marker] + TestImages.big(length ?? payload.count + 2, 2) + payload
    }

    static func jpeg(_ simple: [UInt8], _ segments: [[UInt8]]) -> [UInt8] {
        simple[..<2] + segments.flatMap { $0 } + simple[2...]
    }

    static func png(_ simple: [UInt8], _ chunks: [[UInt8]]) -> [UInt8] {
        simple[..<33] + chunks.flatMap { $0 } + simple[33...]
    }

    /// In the extended form: a profile stands before the picture, all else behind it.
    static func webp(
        _ simple: [UInt8], _ size: (Int, Int), profile: [UInt8]? = nil, exif: [UInt8]? = nil, xmp: [UInt8]? = nil
    )
        -> [UInt8]
    {
        func chunk(_ name: String, _ bytes: [UInt8]?) -> [UInt8] {
            guard let bytes else { return [] }
            return Array(name.utf8) + TestImages.little(bytes.count, 4) + bytes
                + [UInt8](repeating: 0, count: bytes.count & 1)
        }
        let flags: UInt8 = (profile == nil ? 0 : 0x20) | (exif == nil ? 0 : 8) | (xmp == nil ? 0 : 4)
        let header = [flags, 0, 0, 0] + TestImages.little(size.0 - 1, 3) + TestImages.little(size.1 - 1, 3)
        let body =
            Array("WEBP".utf8) + chunk("VP8X", header) + chunk("ICCP", profile) + simple[12...] + chunk("EXIF", exif)
            + chunk("XMP ", xmp)
        return Array("RIFF".utf8) + TestImages.little(body.count, 4) + body
    }

    /// A bare codestream in a container.
    static func jxl(_ codestream: [UInt8], _ boxes: [(String, [UInt8])]) -> [UInt8] {
        let start: [(String, [UInt8])] = [
            ("JXL ", [0x0D, 0x0A, 0x87, 0x0A]), ("ftyp", Array("jxl \0\0\0\0jxl ".utf8)),
        ]
        return (start + boxes + [("jxlc", codestream)]).flatMap { name, content in
            TestImages.big(content.count + 8, 4) + Array(name.utf8) + content
        }
    }

    static func gif(_ simple: [UInt8], _ name: String, _ data: [UInt8]) -> [UInt8] {
        let table = simple[10] & 0x80 == 0 ? 0 : 3 << (Int(simple[10] & 7) + 1)
        var blocks: [UInt8] = []
        for start in stride(from: 0, to: data.count, by: 255) {
            let part = data[start..<min(start + 255, data.count)]
            blocks += [UInt8(part.count)] + part
        }
        return simple[..<(13 + table)] + [0x21, 0xFF, 11] + Array(name.utf8) + blocks + [0] + simple[(13 + table)...]
    }
}
