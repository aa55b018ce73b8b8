import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Files of a word, a side's length and a grey: as small as a format can be.
private struct Plain: ImageCoder {
    var name = "plain"
    var version = "1"
    let mediaType = "image/x-plain"
    let fileExtension = "plain"
    let signatureLength = 5
    var word = "PLAIN"
    var writes = true
    /// More than the header says.
    var excess = 0

    struct Odd: Error {}

    func sniff(_ prefix: UnsafeRawBufferPointer) -> Bool { prefix.starts(with: word.utf8) }

    func header(of prefix: UnsafeRawBufferPointer) throws -> ImageHeader? {
        let start = word.utf8.count
        guard prefix.count > start else { return nil }
        guard prefix[start] != 255 else { throw Odd() }
        let side = prefix[start] == 254 ? 1 << 40 : Int(prefix[start])
        return ImageHeader(width: side, height: side, hasAlpha: false)
    }

    func decode(_ bytes: UnsafeRawBufferPointer, limits: ImageLimits) throws -> RGBAImage {
        let start = word.utf8.count
        guard bytes.count > start + 1 else { throw Failure(.truncated, "No grey.") }
        guard bytes[start + 1] != 255 else { throw Odd() }
        let side = Int(bytes[start]) + excess
        let pixel = [bytes[start + 1], bytes[start + 1], bytes[start + 1], 255]
        let pixels = (0..<side * side).flatMap { _ in pixel }
        guard let image = RGBAImage(width: side, height: side, pixels: pixels) else { throw Odd() }
        return image
    }

    func encode(_ image: RGBAImage, quality: Int?) throws -> [UInt8]? {
        writes ? Array(word.utf8) + [UInt8(image.width), image.pixels[0]] : nil
    }

    func file(side: UInt8, grey: UInt8) -> [UInt8] { Array(word.utf8) + [side, grey] }
}

@Suite(.timeLimit(.minutes(15)))
struct CoderTests {
    private static func made(
        _ source: [UInt8], _ specs: String, _ coders: [any ImageCoder], limits: ImageLimits = ImageLimits(),
    ) throws -> Made {
        try make(source, specs, limits: limits, extensions: ImagingExtensions(coders: coders))
    }

    @Test func aRegisteredFormatIsReadAndKept() throws {
        let made = try Self.made(Plain().file(side: 20, grey: 99), "a=10x b=10x,png", [Plain()])
        #expect(made.report.facts.formatName == "plain" && made.report.facts.format == nil)
        #expect(made.report.renditions.map(\.formatName) == ["plain", "png"])
        #expect(made.files[0] == Plain().file(side: 10, grey: 99))
        #expect(try Raster(made.files[1])[5, 5] == [99, 99, 99])
    }

    @Test func aFormatWithoutAnEncoderBecomesJPEG() throws {
        let made = try Self.made(Plain().file(side: 20, grey: 99), "a=10x", [Plain(writes: false)])
        #expect(made.report.renditions.map(\.formatName) == ["jpeg"])
    }

    @Test func theLastRegisteredCoderIsAskedFirst() throws {
        let source = Plain().file(side: 4, grey: 7)
        let first = Plain(name: "first"), second = Plain(name: "second")
        #expect(try Self.made(source, "", [first, second]).report.facts.formatName == "second")
        #expect(try Self.made(source, "", [second, first]).report.facts.formatName == "first")
    }

    @Test func aRegisteredCoderIsAskedBeforeTheBuiltInOnes() throws {
        let coder = Plain(name: "mine", word: "BM")
        #expect(try Self.made(coder.file(side: 4, grey: 7), "", [coder]).report.facts.formatName == "mine")
        let bmp = try Self.made(SampleImage.bytes(of: .bmp), "", [])
        #expect(bmp.report.facts.formatName == "bmp")
    }

    @Test func codersAreListedInTheOrderInWhichTheyAreAsked() {
        let names = ImagingExtensions(coders: [Plain(name: "a"), Plain(name: "b")]).coders.listing.map(\.name)
        #expect(names.prefix(3) == ["b", "a", "qoi"])
        #expect(Set(names) == Set(ImageFormat.allCases.map(\.rawValue) + ["a", "b"]))
    }

    @Test func aCodersVersionIsPartOfTheIdentity() {
        let versions = [[], [Plain()], [Plain(version: "2")]].map { ImagingExtensions(coders: $0).coders.version }
        #expect(Set(versions).count == 3)
        #expect(versions.allSatisfy { $0.hasPrefix(ImagingRuntime.coderVersion) && $0.contains("bmp 1") })
    }

    private static let unreadable: [(String, [UInt8], FailureClass)] = [
        ("PLAIN", [], .truncated), ("PLAIN", [9], .truncated), ("PLAIN", [0, 1], .badImage),
        ("PLAIN", [255, 1], .badImage), ("PLAIN", [9, 255], .badImage), ("PLAIN", [200, 1], .tooManyPixels),
        ("PLAIN", [254, 1], .tooManyPixels), ("PLUME of nothing that is known", [], .notAnImage),
    ]

    @Test(arguments: unreadable)
    func aCodersFailureKeepsItsClass(word: String, rest: [UInt8], expected: FailureClass) {
        let source = Array(word.utf8) + rest
        #expect(
            failure { _ = try Self.made(source, "a=5x", [Plain()], limits: ImageLimits(pixels: 10_000)) } == expected)
    }

    @Test func aPictureOfAnotherSizeThanItsHeaderIsRefused() {
        #expect(failure { _ = try Self.made(Plain().file(side: 4, grey: 7), "a=2x", [Plain(excess: 1)]) } == .badImage)
    }

    @Test func aRegisteredCodersHeaderIsCheckedWhileItArrives() {
        let inspector = HeaderInspector(
            limits: ImageLimits(pixels: 10_000), coders: ImagingExtensions(coders: [Plain()]).coders)
        let verdict = { (bytes: [UInt8]) -> String in
            switch bytes.withUnsafeBytes(inspector.inspect) {
            case .undecided: "undecided"
            case .accept: "accepted"
            case .acceptAs(let name): name
            case .refuse(let error): error.failureClass.rawValue
            }
        }
        #expect(verdict(Array("PLAIN".utf8)) == "undecided")
        #expect(verdict(Plain().file(side: 50, grey: 1)) == "plain")
        #expect(verdict(Plain().file(side: 150, grey: 1)) == "too-many-pixels")
    }
}
