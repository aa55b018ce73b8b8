import Core
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

/// The settings of encoders, read back from the written bytes.
@Suite(.timeLimit(.minutes(15)))
struct EncodingTests {
    /// Texture enough that settings matter.
    private static let picture = TestImages.png(96, 64) { x, y in
        (UInt8((x * 3 + y) % 256), UInt8((x * y) % 256), UInt8(128 + (x / 8 + y / 8) % 2 * 90), 255)
    }

    private func file(_ spec: String) throws -> [UInt8] { try make(one: Self.picture, "x,\(spec)") }

    /// The frame header's marker and its components' sampling factors.
    private func frame(_ jpeg: [UInt8]) -> (marker: UInt8, sampling: [UInt8])? {
        for offset in 2..<(jpeg.count - 20) where jpeg[offset] == 0xFF && [0xC0, 0xC2].contains(jpeg[offset + 1]) {
            return (jpeg[offset + 1], (0..<3).map { jpeg[offset + 11 + 3 * $0] })
        }
        return nil
    }

    @Test func jpegIsBaselineUnlessProgressive() throws {
        #expect(try frame(file("jpeg"))?.marker == 0xC0)
        #expect(try frame(file("jpeg,progressive"))?.marker == 0xC2)
    }

    @Test(arguments: [("420", 0x22), ("444", 0x11)])
    func chromaIsSubsampledAsTheOptionSays(chroma: String, luma: UInt8) throws {
        #expect(try frame(file("jpeg,q95,chroma:\(chroma)"))?.sampling == [luma, 0x11, 0x11])
        #expect(try frame(file("jpeg,q50,chroma:\(chroma)"))?.sampling == [luma, 0x11, 0x11])
    }

    @Test(arguments: [(256, 8), (100, 4), (16, 4), (4, 2), (2, 1)])
    func aPaletteHasAtMostTheGivenNumberOfColours(colours: Int, bits: UInt8) throws {
        let png = try file("png,colours:\(colours)")
        #expect(png[25] == 3 && png[24] <= bits)
        let raster = try Raster(png)
        let seen = Set((0..<64).flatMap { y in (0..<96).map { raster[$0, y] } })
        #expect(seen.count <= colours && seen.count >= 2)
    }

    @Test func pngIsInterlacedIfProgressive() throws {
        #expect(try file("png")[28] == 0 && file("png,progressive")[28] == 1)
    }

    @Test(arguments: ["webp,lossless", "jxl,lossless", "png", "tiff", "webp,near-lossless:100"])
    func losslessKeepsEveryPixel(spec: String) throws {
        let bytes = try file(spec)
        #expect(try Raster(make(one: bytes, "x,png")).bytes == Raster(Self.picture).bytes)
    }

    @Test func nearLosslessIsSmallerAndNearToTheSource() throws {
        let exact = try file("webp,lossless")
        let near = try file("webp,near-lossless:20")
        #expect(near.count < exact.count)
        let difference = try Raster(near).difference(to: Raster(Self.picture))
        #expect(difference > 0 && difference < 12)
    }

    @Test(arguments: ["webp,lossless", "avif,q50", "jxl,q70"])
    func effortChangesTheEncodedBytes(spec: String) throws {
        let low = spec.hasPrefix("jxl") ? 3 : 0
        let high = spec.hasPrefix("webp") ? 6 : 7
        #expect(try file("\(spec),effort:\(low)") != file("\(spec),effort:\(high)"))
    }

    @Test(arguments: VariantSpec.Output.allCases.filter { $0.defaultQuality != nil })
    func aHigherQualityMakesALargerFileAndASmallerDifference(format: VariantSpec.Output) throws {
        let low = try file("\(format.rawValue),q30")
        let high = try file("\(format.rawValue),q90")
        #expect(low.count < high.count)
        let whole = try Raster(Self.picture)
        #expect(try Raster(low).difference(to: whole) > Raster(high).difference(to: whole))
    }

    @Test func autoKeepsTheSmallestFormat() throws {
        let sizes = try ["jpeg", "webp", "avif"].map { ($0, try file($0).count) }
        let smallest = try #require(sizes.min { $0.1 < $1.1 })
        let auto = try make(Self.picture, "v=x,auto")
        #expect(auto.report.renditions.first?.formatName == smallest.0)
        #expect(auto.files.first?.count == smallest.1)
        #expect(try make(Self.picture, "v=x,auto:jpeg").report.renditions.first?.format == .jpeg)
        let clear = TestImages.png(20, 20, kind: .rgba) { x, _ in (9, 90, 9, x < 9 ? 0 : 255) }
        let kept = try make(clear, "v=x,auto:jpeg+png")
        #expect(kept.report.renditions.first?.format == .png)
    }
}

@Suite(.timeLimit(.minutes(15)))
struct PassThroughTests {
    private static func jpeg() throws -> [UInt8] { try make(one: TestImages.png(60, 40), "x,jpeg,q93") }

    @Test func aSourceThatEqualsTheVariantIsPassedThrough() throws {
        let source = try Self.jpeg()
        for spec in ["60x40", "x,jpeg", "100x100", "60x,keep-metadata", "x,max-bytes:100000"] {
            let made = try make(source, "v=\(spec)")
            #expect(made.files == [source], "\(spec)")
            #expect(made.report.renditions == [Rendition(name: "v", width: 60, height: 40, format: .jpeg)])
            #expect(made.report.facts.placeholders != nil)
        }
    }

    @Test func aSourceThatDiffersFromTheVariantIsEncoded() throws {
        let source = try Self.jpeg()
        for spec in ["59x", "x,jpeg,q60", "x,webp", "x,invert", "x,progressive", "60x50,contain"] {
            #expect(try make(one: source, spec) != source, "\(spec) gives the same")
        }
    }

    @Test func aTruncatedPictureIsNotPassedThrough() throws {
        let source = try Self.jpeg()
        #expect(failure { _ = try make(source.dropLast(source.count / 3) + [], "v=x,jpeg") } == .truncated)
    }

    @Test func anAnimationIsPassedThroughWithAllItsFrames() throws {
        let gif = TestImages.gif(20, 10, frames: [200, 10, 90])
        #expect(try make(one: gif, "x,gif") == gif)
        #expect(try make(one: gif, "100x") == gif)
        #expect(try make(one: gif, "x,gif,decode-first-frame-only") != gif)
    }
}

@Suite(.timeLimit(.minutes(15)))
struct MetadataTests {
    /// A JPEG whose EXIF names a camera, an artist and a copyright.
    private static func tagged() throws -> [UInt8] {
        let entries: [(tag: UInt16, text: String)] = [
            (0x010F, "SecretCamera\0"), (0x013B, "Ann Artist\0"), (0x8298, "(c) Ann 2020\0"),
        ]
        var directory = little(UInt16(entries.count))
        var values: [UInt8] = []
        let start = 8 + 2 + 12 * entries.count + 4
        for entry in entries {
            directory += little(entry.tag) + little(UInt16(2)) + little(UInt32(entry.text.utf8.count))
            directory += little(UInt32(start + values.count))
            values += Array(entry.text.utf8)
        }
        let tiff = [0x49, 0x49, 0x2A, 0, 8, 0, 0, 0] + directory + [0, 0, 0, 0] + values
        let payload = Array("Exif\0\0".utf8) + tiff
        let length = payload.count + 2
        let jpeg = try make(one: TestImages.png(40, 30), "x,jpeg,q90")
        return jpeg[..<2] + [0xFF, 0xE1, UInt8(length >> 8), UInt8(length & 255)] + payload + jpeg[2...]
    }

    private static func little<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        withUnsafeBytes(of: number.littleEndian) { Array($0) }
    }

    private func says(_ file: [UInt8], _ text: String) -> Bool {
        file.indices.dropLast(text.utf8.count - 1).contains { file[$0...].starts(with: text.utf8) }
    }

    @Test(arguments: ["jpeg", "webp", "png", "avif", "tiff", "jxl"])
    func onlyArtistAndCopyrightAreKept(format: String) throws {
        let file = try make(one: Self.tagged(), "20x,\(format)")
        #expect(says(file, "(c) Ann 2020") && says(file, "Ann Artist"))
        #expect(!says(file, "SecretCamera"))
    }

    @Test(arguments: ["jpeg", "webp", "png", "avif", "tiff", "jxl"])
    func keepMetadataKeepsAllMetadata(format: String) throws {
        let file = try make(one: Self.tagged(), "20x,\(format),keep-metadata")
        #expect(says(file, "SecretCamera") && says(file, "(c) Ann 2020"))
    }

    @Test(arguments: ["jpeg", "webp", "png", "avif", "tiff", "jxl"])
    func stripCopyrightRemovesArtistAndCopyright(format: String) throws {
        let file = try make(one: Self.tagged(), "20x,\(format),strip-copyright")
        #expect(!says(file, "(c) Ann 2020") && !says(file, "Ann Artist") && !says(file, "SecretCamera"))
        let rest = try make(one: Self.tagged(), "20x,\(format),strip-copyright,keep-metadata")
        #expect(!says(rest, "(c) Ann 2020") && says(rest, "SecretCamera"))
    }

    /// Metadata are written into the finished file, which must stay readable.
    @Test(arguments: ["tiff", "jxl", "png"]) func aFileWithMetadataIsStillReadable(format: String) throws {
        let plain = try Raster(make(one: TestImages.png(40, 30), "20x,png"))
        for options in ["", ",keep-metadata"] {
            let tagged = try Raster(make(one: Self.tagged(), "20x,\(format)\(options)"))
            #expect(tagged.size == "20x15" && plain.difference(to: tagged) < 6)
        }
    }

    @Test func aPNGHasOneEXIFChunk() throws {
        for options in ["", ",keep-metadata"] {
            let file = try make(one: Self.tagged(), "20x,png\(options)")
            let word = Array("eXIf".utf8)
            #expect(file.indices.count { file[$0...].starts(with: word) } == 1)
            #expect(file.suffix(8).starts(with: Array("IEND".utf8)))
        }
    }

    /// libvips' texts have the value of a tag twice, and more for a copyright.
    @Test func theValueOfATagIsFoundInLibvipsText() {
        let fields = [
            "Ann (Ann, ASCII, 4 components, 4 bytes)": "Ann",
            "Ann (c) (Ann (c), ASCII, 8 components, 8 bytes)": "Ann (c)",
            "Ann (Ann (Photographer) - [None] (Editor), ASCII, 5 components, 5 bytes)": "Ann",
            "A, ASCII, B (A, ASCII, B, ASCII, 12 components, 12 bytes)": "A, ASCII, B",
        ]
        for (field, text) in fields {
            let block = CopyrightBlock { $0.hasSuffix("Artist") ? field : nil }
            let bytes = block?.bytes ?? []
            #expect(says(bytes, "\(text)\0"), "\(field)")
            let length = text.utf8.count < 4 ? 0 : text.utf8.count + 1
            #expect(bytes.count == 32 + length, "\(field)")
        }
    }

    @Test func aPictureWithoutTagsGetsNoEXIF() throws {
        for format in ["jpeg", "webp", "png", "avif", "tiff", "jxl"] {
            #expect(!says(try make(one: TestImages.png(40, 30), "20x,\(format)"), "Exif"))
        }
    }

    @Test func aSourceWithMetadataIsNotPassedThrough() throws {
        let source = try Self.tagged()
        #expect(try make(one: source, "x,jpeg") != source)
        #expect(try make(one: source, "x,jpeg,keep-metadata") == source)
    }

    @Test(.enabled(if: Corpus.isThere, "\(Corpus.missing)"))
    func keepProfileKeepsTheProfile() throws {
        let source = try Corpus.bytes(#require(Corpus.files("samples").first { $0.string.hasSuffix("image-p3.jpg") }))
        #expect(says(try make(one: source, "50x,jpeg,keep-profile"), "ICC_PROFILE"))
        #expect(!says(try make(one: source, "50x,jpeg"), "ICC_PROFILE"))
    }
}
