import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

/// A file that is passed through has no parts that a variant leaves out.
@Suite(.timeLimit(.minutes(15)))
struct ExtrasTests {
    private static let note = Array("a note of somebody's".utf8)

    /// - Parameter isKept: by `keep-metadata` together with `strip-copyright`.
    private func check(_ file: [UInt8], _ format: String, isKept: Bool = false) throws {
        #expect(try make(one: file, "x,\(format)") != file)
        #expect(try make(one: file, "x,\(format),keep-metadata") == file)
        #expect(try (make(one: file, "x,\(format),keep-metadata,strip-copyright") == file) == isKept)
    }

    @Test func aJPEGWithExtraSegmentsIsNotPassedThrough() throws {
        let plain = try make(one: TestImages.png(40, 30), "x,jpeg")
        #expect(try make(one: plain, "x,jpeg") == plain)
        #expect(try make(one: plain + [0, 0, 0], "x,jpeg") == plain + [0, 0, 0])
        let segment = MetadataSourceTests.segment
        for extra in [segment(0xFE, Self.note), segment(0xE5, Self.note), segment(0xE2, Array("MPF\0".utf8))] {
            try check(plain[..<2] + extra + plain[2...], "jpeg")
        }
        try check(plain + MetadataSourceTests.jpeg(), "jpeg")
        try check(plain + Self.note, "jpeg")
        // Between two segments, which decoders skip.
        let end = 4 + Int(plain[4]) * 256 + Int(plain[5])
        try check(plain[..<end] + Self.note + plain[end...], "jpeg")
    }

    @Test func aProgressiveJPEGHasNoExtras() throws {
        let plain = try make(one: TestImages.png(90, 70), "x,jpeg,progressive")
        #expect(try make(one: plain, "x,jpeg") == plain)
    }

    @Test func aPNGWithExtraChunksIsNotPassedThrough() throws {
        let plain = TestImages.png(40, 30)
        #expect(try make(one: plain, "x,png") == plain)
        for (name, isKept) in [("tIME", true), ("prVt", false)] {
            let chunk = TestImages.pngChunk(name, [7, 232, 1, 1, 1, 1, 1])
            try check(plain[..<33] + chunk + plain[33...], "png", isKept: isKept)
        }
        let text = TestImages.pngChunk("tEXt", Array("Software\0".utf8) + Self.note)
        try check(plain[..<33] + text + plain[33...], "png", isKept: true)
        try check(plain + Self.note, "png")
    }

    @Test func aGIFWithExtraBlocksIsNotPassedThrough() throws {
        var gif = TestGIF(width: 12, height: 10, loopCount: 3, frames: [.init(12, 10), .init(12, 10, seed: 1)])
        #expect(try make(one: gif.bytes, "x,gif") == gif.bytes)
        try check(gif.bytes + Self.note, "gif")
        let note = [UInt8(Self.note.count)] + Self.note + [0]
        for block in [TestGIF.comment, TestGIF.unknownExtension, [0x21, 0xFF, 11] + Array("NOTES   1.0".utf8) + note] {
            gif.extras = block
            try check(gif.bytes, "gif")
        }
        gif.extras = [0x21, 0xFF, 11] + Array("XMP DataXMP".utf8) + note
        try check(gif.bytes, "gif", isKept: true)
    }

    @Test func aWebPWithExtraChunksIsNotPassedThrough() throws {
        let film = try AnimationMetadataTests.film()
        #expect(try make(one: film, "x,webp") == film)
        let chunk = Array("NOTE".utf8) + TestImages.little(Self.note.count, 4) + Self.note
        try check(film[..<4] + TestImages.little(film.count - 8 + chunk.count, 4) + film[8...] + chunk, "webp")
        try check(film + Self.note, "webp")
    }

    @Test func anAVIFWithExtraBoxesIsNotPassedThrough() throws {
        let plain = try make(one: TestImages.png(40, 30), "x,avif")
        #expect(try make(one: plain, "x,avif") == plain)
        try check(plain + TestImages.big(8 + Self.note.count, 4) + Array("free".utf8) + Self.note, "avif")
    }

    @Test func aTIFFWithExtraTagsIsNotPassedThrough() throws {
        let plain = try make(one: TestImages.png(40, 30), "x,tiff")
        #expect(try make(one: plain, "x,tiff") == plain)
        let tagged = try make(one: MetadataSourceTests.jpeg(), "x,tiff,keep-metadata")
        try check(tagged, "tiff", isKept: false)
    }

    @Test func damagedFilesNeverTrap() throws {
        var random = SeededGenerator(seed: 9)
        let policy = try MetadataPolicy(#require(VariantSpec.parseList("v=x,keep-profile").first).options)
        for format in ImageFormat.allCases {
            for _ in 0..<2_000 {
                var bytes = SampleImage.bytes(of: format)
                for _ in 0..<Int.random(in: 1...6, using: &random) {
                    bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: 0...255, using: &random)
                }
                bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &random)))
                bytes.withUnsafeBytes { _ = format.definition.hasExtras(ByteReader($0), policy) }
            }
        }
    }
}
