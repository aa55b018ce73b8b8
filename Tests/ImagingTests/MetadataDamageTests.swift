import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Metadata that are broken or can't be written are no reason to refuse the pixels.
@Suite(.timeLimit(.minutes(15)))
struct MetadataDamageTests {
    private static let picture = TestImages.png(40, 30)
    private static let tiff: [UInt8] = Array("II".utf8) + [42, 0, 8, 0, 0, 0]

    /// EXIF blocks, without the six bytes before them that a JPEG has.
    static let blocks: [(name: String, bytes: [UInt8])] = [
        ("empty", []), ("one byte", [1]), ("no TIFF", Array("hello, world".utf8)), ("only its header", tiff),
        ("a directory beyond its end", Array("MM".utf8) + [0, 42, 0x7F, 0xFF, 0xFF, 0xFF]),
        ("a count of 65,535", tiff + [0xFF, 0xFF]),
        ("a value beyond its end", tiff + [1, 0, 0x0F, 1, 2, 0, 0xFF, 0xFF, 0, 0, 0xF0, 0xFF, 0xFF, 0x7F]),
        ("an orientation of text", tiff + [1, 0, 0x12, 1, 2, 0, 1, 0, 0, 0, 65, 0, 0, 0, 0, 0, 0, 0]),
        ("an orientation without a value", tiff + [1, 0, 0x12, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("a directory that points at itself", tiff + [1, 0, 0x69, 0x87, 4, 0, 1, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0]),
        ("an unknown type", tiff + [1, 0, 0x0F, 1, 99, 0, 1, 0, 0, 0, 65, 0, 0, 0, 0, 0, 0, 0]),
    ]

    private static let specs = [
        "", "v=x,png", "v=20x,jpeg,keep-metadata", "v=20x,webp,keep-metadata", "v=20x,png,keep-metadata",
    ]

    private static func segment(_ marker: UInt8, _ payload: [UInt8]) -> [UInt8] {
        [0xFF, marker] + TestImages.big(payload.count + 2, 2) + payload
    }

    @Test(arguments: blocks.indices) func brokenEXIFIsIgnored(index: Int) throws {
        let (name, block) = Self.blocks[index]
        let jpeg = try make(one: Self.picture, "x,jpeg")
        let png = Self.picture
        let webp = try make(one: Self.picture, "x,webp")
        let sources: [(String, [UInt8])] = [
            ("jpeg", jpeg[..<2] + Self.segment(0xE1, Array("Exif\0\0".utf8) + block) + jpeg[2...]),
            ("jpeg, cut signature", jpeg[..<2] + Self.segment(0xE1, Array("Exif".utf8)) + jpeg[2...]),
            ("png", png[..<33] + TestImages.pngChunk("eXIf", block) + png[33...]),
            ("webp", Self.webp(webp, exif: block)),
        ]
        for (format, source) in sources {
            for specs in Self.specs {
                #expect(failure { _ = try make(source, specs) } == nil, "\(name) in \(format), '\(specs)'")
            }
        }
    }

    /// A WebP that has the extended form already.
    private static func addingEXIF(_ exif: [UInt8], to extended: [UInt8]) -> [UInt8] {
        let chunk: [UInt8] = Array("EXIF".utf8) + TestImages.little(exif.count, 4) + exif
        let body: [UInt8] = Array(extended[8...]) + chunk
        var file: [UInt8] = Array("RIFF".utf8) + TestImages.little(body.count, 4) + body
        file[20] |= 8
        return file
    }

    /// A still WebP in the extended form, with EXIF behind the picture.
    private static func webp(_ simple: [UInt8], exif: [UInt8]) -> [UInt8] {
        let header: [UInt8] = [8, 0, 0, 0, 39, 0, 0, 29, 0, 0]
        let padding = [UInt8](repeating: 0, count: exif.count & 1)
        let body =
            Array("WEBPVP8X".utf8) + TestImages.little(header.count, 4) + header + simple[12...]
            + Array("EXIF".utf8) + TestImages.little(exif.count, 4) + exif + padding
        return Array("RIFF".utf8) + TestImages.little(body.count, 4) + body
    }

    @Test func aWebPThatIsCutWithinItsMetadataIsWhole() throws {
        let exif = Self.tiff + [UInt8](repeating: 0, count: 60)
        let still = Self.webp(try make(one: Self.picture, "x,webp"), exif: exif)
        var gif = TestGIF(width: 40, height: 30)
        gif.frames = (0..<3).map { TestGIF.Frame(40, 30, seed: $0) }
        let animation = Self.addingEXIF(exif, to: try make(one: gif.bytes, "x,webp"))
        for (file, name) in [(still, "still"), (animation, "animation")] {
            let whole = try make(one: file, "20x,png")
            for cut in [1, 30, exif.count, exif.count + 3] {
                let made = try make(one: Array(file.dropLast(cut)), "20x,png")
                #expect(made == whole, "\(name), \(cut) bytes cut")
            }
        }
        let pixelsCut = Array(still.dropLast(exif.count + 8 + 2))
        #expect(failure { _ = try make(pixelsCut, "v=20x,png") } == .truncated)
    }

    @Test func otherBrokenSegmentsAreIgnored() throws {
        let jpeg = try make(one: Self.picture, "x,jpeg")
        let segments: [[UInt8]] = [
            Self.segment(0xED, Array("Photoshop 3.0\0".utf8)),
            Self.segment(0xED, Array("Photoshop 3.0\08BIM".utf8) + [4, 4, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]),
            Self.segment(0xE1, Array("http://ns.adobe.com/xap/1.0/\0".utf8)),
            Self.segment(0xE2, Array("ICC_PROFILE\0".utf8) + [9, 3, 1, 2, 3]),
            Self.segment(0xE0, Array("JFXX\0".utf8)), Self.segment(0xFE, []),
        ]
        for segment in segments {
            for specs in Self.specs {
                let source = jpeg[..<2] + segment + jpeg[2...]
                #expect(failure { _ = try make(Array(source), specs) } == nil, "\(segment.prefix(20)), '\(specs)'")
            }
        }
    }

    @Test func aPNGsTextWithABadKeyIsLeftOut() throws {
        let keys: [[UInt8]] = [
            [0x94], [0x94, 65], Array("a\u{7F}b".utf8), Array(" Title".utf8), Array("A  B".utf8), [0xFC],
        ]
        for key in keys {
            let chunk = TestImages.pngChunk("tEXt", key + [0] + Array("text".utf8))
            let good = TestImages.pngChunk("tEXt", Array("Title\0A good one".utf8))
            let source = Array(Self.picture[..<33]) + chunk + good + Self.picture[33...]
            for specs in Self.specs + [
                "v=30x,png,strip-copyright", "v=x,png,q80 w=20x,gif".replacing(",q80", with: ""),
            ] {
                #expect(failure { _ = try make(source, specs) } == nil, "\(key), '\(specs)'")
            }
            let kept = try make(one: source, "20x,png,keep-metadata")
            // It may be compressed.
            let names = try kept.withUnsafeBytes { try Picture(of: $0, as: .png).metadataFields }
            #expect(names.filter { $0.hasPrefix("png-comment-") }.map { $0.suffix(5) } == ["Title"], "\(names)")
        }
    }

    /// Texts that decompress to more than the limit are left out, too.
    @Test func aPNGsHugeTextIsLeftOut() throws {
        let bomb = TestImages.pngChunk("zTXt", Array("a".utf8) + [0, 0] + TestImages.zlibZeros(1 << 26))
        let source = Array(Self.picture[..<33]) + bomb + Self.picture[33...]
        #expect(try make(one: source, "x,png") == make(one: Self.picture + [1], "x,png"))
    }
}
