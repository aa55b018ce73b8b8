import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

/// Squares of grey that change: a word, a side, a loop count, the number of frames and a grey for each.
private struct Flicker: AnimationCoder {
    let name = "flicker"
    let version = "1"
    let mediaType = "image/x-flicker"
    let fileExtension = "flick"
    let signatureLength = 5
    var writesAnimations = true
    var writesStills = true
    /// Frames that the header promises beyond those there are.
    var excess = 0
    var isBroken = false

    struct Odd: Error {}

    func sniff(_ prefix: UnsafeRawBufferPointer) -> Bool { prefix.starts(with: "FLICK".utf8) }

    func header(of prefix: UnsafeRawBufferPointer) throws -> ImageHeader? {
        prefix.count > 5 ? ImageHeader(width: Int(prefix[5]), height: Int(prefix[5]), hasAlpha: false) : nil
    }

    func animation(in bytes: UnsafeRawBufferPointer) throws -> AnimationHeader? {
        guard bytes.count > 7 else { throw Odd() }
        return bytes[7] == 1 ? nil : AnimationHeader(frames: Int(bytes[7]) + excess, loopCount: Int(bytes[6]))
    }

    func decode(_ bytes: UnsafeRawBufferPointer, limits: ImageLimits) throws -> RGBAImage {
        guard let frame = try reader(of: bytes, limits: limits).next() else { throw Odd() }
        return frame.image
    }

    func encode(_ image: RGBAImage, quality: Int?) throws -> [UInt8]? {
        writesStills ? Self.file(side: image.width, loop: 1, [image.pixels[0]]) : nil
    }

    func reader(of bytes: UnsafeRawBufferPointer, limits: ImageLimits) throws -> any AnimationReader {
        Reader(side: Int(bytes[5]) + (isBroken ? 1 : 0), greys: Array(bytes[8...]))
    }

    func writer(width: Int, height: Int, loopCount: Int, quality: Int?) throws -> (any AnimationWriter)? {
        writesAnimations ? Writer(side: width, loop: loopCount) : nil
    }

    static func file(side: Int, loop: Int, _ greys: [UInt8]) -> [UInt8] {
        Array("FLICK".utf8) + [UInt8(side), UInt8(loop), UInt8(greys.count)] + greys
    }

    private final class Reader: AnimationReader {
        private let side: Int
        private var greys: ArraySlice<UInt8>

        init(side: Int, greys: [UInt8]) {
            self.side = side
            self.greys = greys[...]
        }

        func next() throws -> ImageFrame? {
            guard let grey = greys.popFirst() else { return nil }
            if grey == 255 { throw Odd() }
            if grey == 254 { throw Failure(.truncated, "It ends here.") }
            let pixels = (0..<side * side).flatMap { _ -> [UInt8] in [grey, grey, grey, 255] }
            guard let image = RGBAImage(width: side, height: side, pixels: pixels) else { throw Odd() }
            return ImageFrame(image: image, duration: 40)
        }
    }

    private final class Writer: AnimationWriter {
        private let side: Int
        private let loop: Int
        private var greys: [UInt8] = []

        init(side: Int, loop: Int) {
            self.side = side
            self.loop = loop
        }

        func add(_ frame: ImageFrame) throws { greys.append(frame.image.pixels[0]) }

        func finish() throws -> [UInt8] { Flicker.file(side: side, loop: loop, greys) }
    }
}

@Suite(.timeLimit(.minutes(15)))
struct AnimationCoderTests {
    private static let source = Flicker.file(side: 20, loop: 3, [10, 99, 200])

    private static func made(
        _ source: [UInt8], _ specs: String, _ coder: Flicker = Flicker(), limits: ImageLimits = ImageLimits(),
    ) throws -> Made {
        try make(source, specs, limits: limits, extensions: ImagingExtensions(coders: [coder]))
    }

    @Test func anAnimationOfACoderIsEncodedInItsFormatAndInOthers() throws {
        let made = try Self.made(Self.source, "a=10x b=10x,webp c=10x,gif d=10x,png e=10x,jpeg")
        #expect(made.report.facts.formatName == "flicker" && made.report.facts.frames == 3)
        #expect(made.report.renditions.map(\.formatName) == ["flicker", "webp", "gif", "png", "jpeg"])
        #expect(made.files[0] == Flicker.file(side: 10, loop: 3, [10, 99, 200]))
        for file in made.files[1...3] {
            let film = try Film(file)
            #expect(film.durations == [40, 40, 40] && film.loopCount == 3)
            #expect(zip(film.frames, [10, 99, 200]).allSatisfy { abs(Int($0[0]) - $1) < 3 })
        }
        #expect(try Raster(made.files[4])[5, 5].allSatisfy { abs(Int($0) - 10) < 3 })
    }

    @Test func aVariantMayNameTheCoder() throws {
        let gif = TestImages.gif(40, 30, frames: [10, 90, 200])
        let moving = try Self.made(gif, "a=20x20,fill,coder:flicker")
        #expect(moving.report.renditions.map(\.formatName) == ["flicker"])
        #expect(moving.files[0][5] == 20 && moving.files[0][7] == 3)
        let still = try Self.made(TestImages.png(40, 30), "a=20x20,fill,coder:flicker")
        #expect(still.report.renditions.map(\.formatName) == ["flicker"] && still.files[0][7] == 1)
        let first = try Self.made(gif, "a=20x20,fill,coder:flicker,decode-first-frame-only")
        #expect(first.files[0][7] == 1)
    }

    @Test func anAnimationOfACoderWithoutASaverBecomesGIFUnlessNamed() throws {
        let reader = Flicker(writesAnimations: false, writesStills: false)
        let kept = try Self.made(Self.source, "a=10x", reader)
        #expect(kept.report.renditions.map(\.formatName) == ["gif"])
        #expect(try Film(kept.files[0]).durations == [40, 40, 40])
        #expect(failure { _ = try Self.made(Self.source, "a=10x,coder:flicker", reader) } == .encode)
        #expect(failure { _ = try Self.made(TestImages.png(8, 8), "a=4x,coder:flicker", reader) } == .encode)
        #expect(failure { _ = try Self.made(TestImages.png(8, 8), "a=4x,coder:other") } == .delegate)
    }

    @Test func aReaderThatContradictsItsHeaderFails() {
        for coder in [Flicker(excess: 1), Flicker(excess: -1), Flicker(isBroken: true)] {
            #expect(failure { _ = try Self.made(Self.source, "a=10x,webp", coder) } == .badImage)
        }
        #expect(failure { _ = try Self.made(Flicker.file(side: 9, loop: 0, []), "a=5x,webp") } == .badImage)
        #expect(failure { _ = try Self.made(Flicker.file(side: 9, loop: 0, [1, 255]), "a=5x,webp") } == .badImage)
        #expect(failure { _ = try Self.made(Flicker.file(side: 9, loop: 0, [1, 254]), "a=5x,webp") } == .truncated)
        let limits = ImageLimits(frames: 2)
        #expect(failure { _ = try Self.made(Self.source, "a=10x,webp", limits: limits) } == .tooManyPixels)
    }

    @Test(arguments: ["a=10x,webp,coder:flicker", "a=10x,auto,coder:flicker", "a=10x,coder:a/b", "a=10x,coder"])
    func contradictoryCodersAreRefused(spec: String) {
        #expect(throws: VariantSpecError.self) { try VariantSpec.parseList(spec) }
    }

    @Test func shortFormAndJSONOfACoderAreEqual() throws {
        let short = try VariantSpec.parse("a=10x,coder:flicker")
        let long = try #require(try VariantSpec.parseList(#"{"name":"a","width":10,"coder":"flicker"}"#).first)
        #expect(short == long && short.coderName == "flicker")
        #expect(short.canonical != (try VariantSpec.parse("a=10x")).canonical)
    }
}
