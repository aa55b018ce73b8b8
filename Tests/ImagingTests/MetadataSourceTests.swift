import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Metadata of sources, read from each format in its own way.
@Suite(.timeLimit(.minutes(15)))
struct MetadataSourceTests {
    static let outputs = ["jpeg", "png", "webp", "avif", "tiff", "jxl"]

    /// A JPEG whose EXIF names a camera, an artist and a copyright.
    static func jpeg() throws -> [UInt8] {
        let exif = EXIF(camera: "SecretCamera", artist: "Ann Artist", copyright: "(c) Ann 2020")
        let jpeg = try make(one: TestImages.png(40, 30), "x,jpeg,q90")
        return jpeg[..<2] + segment(0xE1, Array("Exif\0\0".utf8) + exif.bytes) + jpeg[2...]
    }

    static func segment(_ marker: UInt8, _ payload: [UInt8]) -> [UInt8] {
        [0xFF, marker] + TestImages.big(payload.count + 2, 2) + payload
    }

    private func says(_ file: [UInt8], _ text: String) -> Bool { file.contains(Array(text.utf8)) }

    /// libvips' loader lends its blobs only as long as the opened image exists.
    @Test(arguments: outputs) func theTagsOfAnAVIFAreKeptInEveryFormat(format: String) throws {
        let avif = try make(one: Self.jpeg(), "x,avif,keep-metadata")
        #expect(says(avif, "(c) Ann 2020"))
        for options in ["keep-metadata", "keep-metadata,keep-profile", "keep-profile"] {
            let made = try make(one: avif, "20x,\(format),\(options)")
            #expect(says(made, "(c) Ann 2020\0") && says(made, "Ann Artist\0"), "\(options)")
            #expect(!says(made, "Photographer"), "\(options)")
            #expect(says(made, "SecretCamera") == options.hasPrefix("keep-metadata"), "\(options)")
        }
    }

    @Test(arguments: ["tiff", "jxl"]) func artistAndCopyrightAreReadFromTIFFAndJPEGXL(source: String) throws {
        let file = try make(one: Self.jpeg(), "x,\(source),keep-metadata")
        #expect(says(file, "(c) Ann 2020") && says(file, "SecretCamera"))
        for format in Self.outputs {
            let made = try make(one: file, "20x,\(format)")
            #expect(says(made, "(c) Ann 2020\0") && says(made, "Ann Artist\0"), "\(format)")
            #expect(!says(made, "SecretCamera") && !says(made, "Photographer"), "\(format)")
            let kept = try make(one: file, "20x,\(format),keep-metadata")
            #expect(says(kept, "(c) Ann 2020\0") && says(kept, "SecretCamera"), "\(format)")
            let stripped = try make(one: file, "20x,\(format),strip-copyright")
            #expect(!says(stripped, "Ann") && !says(stripped, "SecretCamera"), "\(format)")
            let anonymous = try make(one: file, "20x,\(format),strip-copyright,keep-metadata")
            #expect(!says(anonymous, "Ann") && says(anonymous, "SecretCamera"), "\(format)")
        }
        #expect(says(try make(one: file, "20x,gif"), "Copyright: (c) Ann 2020"))
    }

    @Test(arguments: ["tiff", "jxl,lossless"]) func tagsChangeNoPixel(source: String) throws {
        let tagged = try make(one: make(one: Self.jpeg(), "x,png,keep-metadata"), "x,\(source),keep-metadata")
        let plain = try make(one: make(one: Self.jpeg(), "x,png,strip-copyright"), "x,\(source)")
        #expect(try Raster(make(one: tagged, "20x,png")).difference(to: Raster(make(one: plain, "20x,png"))) == 0)
        #expect(try make(one: tagged, "x,\(source.prefix { $0 != "," })") != tagged)
    }

    @Test func theXMPPacketOfAJPEGXLIsKept() throws {
        let packet = Array("<x:xmpmeta xmlns:x='adobe:ns:meta/'><!-- who took it --></x:xmpmeta>".utf8)
        let tagged = try make(one: Self.jpeg(), "x,jxl")
        let file = tagged + TestImages.big(8 + packet.count, 4) + Array("xml ".utf8) + packet
        for format in Self.outputs where format != "png" {
            #expect(try make(one: file, "20x,\(format),keep-metadata").contains(packet), "\(format)")
            #expect(try !make(one: file, "20x,\(format)").contains(packet), "\(format)")
        }
    }

    /// libvips refuses to write more than a megabyte.
    @Test(arguments: outputs) func aLargeEXIFBlockIsLeftOut(format: String) throws {
        let plain = TestImages.png(40, 30)
        let exif = EXIF(camera: String(repeating: "x", count: 1_100_000), artist: "Ann Artist", copyright: "(c) Ann")
        // Behind the header, which ends at byte 33.
        let png = Array(plain[..<33]) + TestImages.pngChunk("eXIf", exif.bytes) + plain[33...]
        for options in ["keep-metadata", "keep-metadata,keep-profile", "", "strip-copyright"] {
            let made = try make(one: png, "20x,\(format)\(options.isEmpty ? "" : ",")\(options)")
            #expect(made.count < 100_000, "\(options)")
        }
    }

    @Test func aTIFFWithoutTagsIsPassedThrough() throws {
        let tiff = try make(one: TestImages.png(40, 30), "x,tiff")
        #expect(try make(one: tiff, "x,tiff") == tiff)
    }

    @Test func exifBlocksAreFoundBehindTheirPrefixes() throws {
        let exif = EXIF(camera: "Box", artist: "Ann", copyright: "Ann").bytes
        let name = Array("Exif\0\0".utf8)
        for prefix in [[], name, [0, 0, 0, 0], [0, 0, 0, 6] + name] {
            let block = (prefix + exif).withUnsafeBytes { ExifBlock($0) { _ in true } }
            #expect(block?.bytes.contains(Array("Box\0".utf8)) == true)
        }
        #expect((name + name + exif).withUnsafeBytes { ExifBlock($0) { _ in true } } == nil)
    }

    @Test func stripCopyrightRemovesArtistTextsOfAPNG() throws {
        let png = TestImages.png(40, 30)
        let texts = [("Artist", "Ann One"), ("Author", "Ann Two"), ("COPYRIGHT", "Ann Three"), ("Software", "Brush 4")]
        let chunks = texts.flatMap { TestImages.pngChunk("tEXt", Array("\($0.0)\0\($0.1)".utf8)) }
        let file = png[..<33] + chunks + png[33...]
        for (spec, count) in [("keep-metadata", 4), ("keep-metadata,strip-copyright", 1), ("strip-copyright", 0)] {
            let made = try make(one: Array(file), "20x,png,\(spec)")
            // They may be compressed.
            let names = try made.withUnsafeBytes { try Picture(of: $0, as: .png).metadataFields }
                .filter { $0.hasPrefix("png-comment-") }
            #expect(names.count == count && (count == 0 || names.contains { $0.hasSuffix("-Software") }), "\(names)")
        }
    }
}
