import Core
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

@Suite(.timeLimit(.minutes(15)))
struct FormatTests {
    /// The same gradient in every format that is decoded, made by our own encoders where there is no maker by hand.
    private static func source(_ format: ImageFormat) throws -> [UInt8] {
        switch format {
        case .png: TestImages.png(64, 48)
        case .gif: TestImages.gif(64, 48)
        case .tiff: TestImages.tiff(64, 48)
        case .jpeg: try make(one: TestImages.png(64, 48), "64x,jpeg,q95")
        case .webp: try make(one: TestImages.png(64, 48), "64x,webp,q95")
        case .avif: try make(one: TestImages.png(64, 48), "64x,avif,q90")
        case .jxl: try make(one: TestImages.png(64, 48), "64x,jxl,q90")
        case .heic, .bmp, .qoi: SampleImage.bytes(of: format)
        }
    }

    @Test(arguments: ImageFormat.allCases, VariantSpec.Output.allCases)
    func everyFormatBecomesEveryOther(from: ImageFormat, to output: VariantSpec.Output) throws {
        let made = try make(Self.source(from), "v=12x8,fill,\(output.rawValue)")
        #expect(made.report.facts.format == from)
        #expect(made.report.renditions == [Rendition(name: "v", width: 12, height: 8, format: output.imageFormat)])
        let file = try #require(made.files.first)
        #expect(file.withUnsafeBytes(ImageFormat.sniff) == output.imageFormat)
        #expect(try Raster(file).size == "12x8")
    }

    @Test(arguments: [
        (ImageFormat.jpeg, ImageFormat.jpeg), (.png, .png), (.webp, .webp), (.avif, .avif), (.gif, .jpeg),
        (.tiff, .jpeg), (.heic, .jpeg),
    ])
    func withoutAFormatTheSourcesFormatIsKept(from: ImageFormat, kept: ImageFormat) throws {
        #expect(try make(Self.source(from), "v=8x").report.renditions.first?.format == kept)
    }

    @Test func aStillIsMadeOfTheFirstFrameAndAllFramesAreCounted() throws {
        let gif = TestImages.gif(20, 10, frames: [200, 10])
        #expect(try facts(gif) == ImageFacts(formatName: "gif", width: 20, height: 10, frames: 2, hasAlpha: false))
        #expect(try Raster(make(one: gif, "10x,png"))[5, 2].first == 200)
    }

    @Test func bothByteOrdersOfTIFFAreRead() throws {
        let little = try Raster(make(one: TestImages.tiff(16, 16), "16x,png"))
        let big = try Raster(make(one: TestImages.tiff(16, 16, bigEndian: true), "16x,png"))
        #expect(little.bytes == big.bytes)
    }

    @Test(arguments: ["320x240", "320x240,cover", "320x240,contain", "320x240,outside", "200x200,fill", "50x50,cover"])
    func theOutputHasTheSizeOfThePlacement(spec: String) throws {
        let spec = try VariantSpec.parse("v=\(spec)")
        for (width, height) in [(401, 283), (283, 401), (100, 50)] {
            let placement = Placement(
                of: PixelSize(width: width, height: height), width: spec.width, height: spec.height, fit: spec.fit,
                enlarge: spec.enlarge)
            let text = "\(spec.width ?? 0)x\(spec.height ?? 0),\(spec.fit.rawValue),png"
            let raster = try Raster(make(one: TestImages.png(width, height), text))
            #expect(PixelSize(width: raster.width, height: raster.height) == placement.output)
        }
    }

    @Test func sizesAreExactForAnyRatio() throws {
        for side in [1, 2, 3, 7, 50, 99, 100, 101, 199] {
            let shrunk = try Raster(make(one: TestImages.png(200, 101), "\(side)x\(side),fill,png"))
            #expect(shrunk.size == "\(side)x\(min(side, 101))")
            let grown = try Raster(make(one: TestImages.png(20, 10), "\(side)x\(side),fill,enlarge,png"))
            #expect(grown.size == "\(side)x\(side)")
        }
    }
}

@Suite(.timeLimit(.minutes(15)))
struct SharedDecodeTests {
    private static let specs = ["160x", "320x", "640x", "100x100,cover", "90x120,contain", "80x80,fill"]

    private static let sources: [(name: String, spec: String)] = [
        ("jpeg", "1600x,jpeg,q90"), ("jpeg of whole chroma", "1600x,jpeg,q90,chroma:444"), ("webp", "1600x,webp"),
        ("progressive jpeg", "1600x,jpeg,progressive"), ("png", "1600x,png"), ("gif", "1600x,gif"),
        ("jxl", "1600x,jxl"),
        ("tiff", "1600x,tiff"), ("avif", "400x,avif"),
    ]

    private static func noise(_ width: Int, _ height: Int) -> [UInt8] {
        TestImages.png(width, height) { x, y in
            (UInt8(x * y / 9 & 255), UInt8((x / 3 ^ y / 5) & 255), UInt8((x * x / 50 + y) & 255), 255)
        }
    }

    /// The identity of a variant does not include the other variants, so its bytes may not depend on them.
    @Test(arguments: sources.indices)
    func aVariantHasTheSameBytesAloneAndBesideOthers(index: Int) throws {
        let source = try make(one: Self.noise(1600, 1200), Self.sources[index].spec)
        try Self.expectTheSameBytes(source, Self.sources[index].name)
    }

    @Test func variantsOfEveryPixelTypeHaveTheSameBytesAloneAndBesideOthers() throws {
        for kind in [TestImages.PNGKind.rgba16, .rgba, .grey, .greyAlpha, .indexedWithAlpha] {
            try Self.expectTheSameBytes(TestImages.png(800, 600, kind: kind), "\(kind)")
        }
    }

    @Test(arguments: ["heic", "bmp", "qoi"])
    func `Variants of HEIC, BMP and QOI have the same bytes alone and beside others`(_ format: String) throws {
        let source =
            switch format {
            case "heic": try make(one: Self.noise(800, 600), "800x,heic")
            case "bmp": TestImages.bmp(800, 600)
            default: TestImages.qoi(800, 600)
            }
        try #require(facts(source).formatName == format)
        try Self.expectTheSameBytes(source, format)
    }

    /// Frames with every kind of blending and disposal, which each decoder composes by itself.
    @Test(arguments: ["gif", "webp", "png"]) func `Variants of animations have the same bytes alone and beside others`(
        _ format: String
    ) throws {
        var gif = TestGIF(width: 120, height: 90, loopCount: 3)
        gif.frames = (0..<6).map { number in
            var frame = TestGIF.Frame(120 - number * 9, 90 - number * 7, seed: number)
            (frame.left, frame.top) = (number * 4, number * 3)
            (frame.disposal, frame.transparent) = (number % 4, number > 0 ? 2 : nil)
            return frame
        }
        let source = format == "gif" ? gif.bytes : try make(one: gif.bytes, "x,\(format)")
        try #require(try Film(source).frames.count == 6)
        let specs = [
            "60x,webp", "40x30,cover,gif", "x,png", "50x50,contain,webp,lossless", "30x30,fill,png",
            "60x,webp,decode-first-frame-only", "x,jpeg", "24x,avif",
        ]
        let list = specs.enumerated().map { "v\($0.offset)=\($0.element)" }
        let together = try make(source, list.joined(separator: " "))
        for (number, spec) in specs.enumerated() {
            let alone = try make(one: source, spec)
            #expect(together.files[number] == alone, "\(format), \(spec)")
            // And beside a single other one.
            let other = list[(number + 1) % list.count]
            #expect(try make(source, "\(list[number]) \(other)").files[0] == alone, "\(format), \(spec), \(other)")
        }
    }

    private static func expectTheSameBytes(_ source: [UInt8], _ name: String) throws {
        let list = specs.enumerated().map { "v\($0.offset)=\($0.element),png" }
        let together = try make(
            source, (list + ["whole=x,webp,q60", "profile=320x,webp,keep-profile"]).joined(separator: " "))
        #expect(together.report.renditions.map(\.name) == ["v0", "v1", "v2", "v3", "v4", "v5", "whole", "profile"])
        for (spec, file) in zip(specs.map { "\($0),png" } + ["x,webp,q60", "320x,webp,keep-profile"], together.files) {
            #expect(try make(one: source, spec) == file, "\(name), \(spec)")
        }
    }

    /// More variants than one pass holds in memory.
    @Test func manyLargeVariantsAreMadeInSeveralPasses() throws {
        let source = try make(one: Self.noise(400, 300), "4000x,enlarge,jpeg")
        let specs = (0..<6).map { "v\($0)=\(3_900 - $0)x,jpeg" }.joined(separator: " ")
        let made = try make(source, specs)
        #expect(made.report.renditions.map(\.width) == (0..<6).map { 3_900 - $0 })
        #expect(try make(one: source, "3897x,jpeg") == made.files[3])
    }

    /// The best result is that of a Lanczos filter over all pixels; the difference from this result is the same with
    /// another variant.
    @Test func aVariantBesideOthersHasTheQualityThatItHasAlone() throws {
        let source = try make(one: Self.noise(1600, 1200), "1600x,jpeg,q95")
        let alone = try Raster(make(one: source, "320x,png"))
        let full = try Raster(make(one: make(one: source, "x,png,brightness:1"), "320x,png"))
        let beside = try Raster(make(source, "a=640x,png b=320x,png").files[1])
        #expect(beside.difference(to: full) == alone.difference(to: full))
    }

    @Test func aTransformWithoutVariantsReportsFacts() throws {
        let made = try make(TestImages.png(8, 8), "")
        #expect(made.report.renditions.isEmpty && made.report.facts.width == 8)
    }
}

@Suite(.timeLimit(.minutes(15)))
struct DescriptorTests {
    @Test func theSourceIsReadFromItsStartAndItsOffsetStays() throws {
        try withFile(TestImages.png(20, 20)) { input in
            try input.seek(offset: 7, from: .start)
            try withFile([]) { output in
                let variant = VariantOutput(spec: try .parse("v=10x"), output: output)
                _ = try Transformer(limits: ImageLimits()).transform(input, into: [variant])
                let offset = try input.seek(offset: 0, from: .current)
                #expect(offset == 7)
                let written = try readAll(output)
                #expect(!written.isEmpty)
            }
        }
    }

    @Test(arguments: ["jpeg", "png", "webp", "avif"])
    func aFullDiskIsAnEncodeFailure(format: String) throws {
        let full = try FileDescriptor.open("/dev/full", .writeOnly)
        try full.closeAfter {
            let variant = VariantOutput(spec: try .parse("v=20x,\(format)"), output: full)
            #expect(
                failure {
                    try withFile(TestImages.png(20, 20)) {
                        _ = try Transformer(limits: ImageLimits()).transform($0, into: [variant])
                    }
                } == .encode)
        }
    }

    @Test(arguments: ["jpeg", "webp"])
    func aDescriptorThatIsNotOpenForWritingIsAnEncodeFailure(format: String) throws {
        let readOnly = try FileDescriptor.open("/dev/null", .readOnly)
        try readOnly.closeAfter {
            let variant = VariantOutput(spec: try .parse("v=20x,\(format)"), output: readOnly)
            #expect(
                failure {
                    try withFile(TestImages.png(20, 20)) {
                        _ = try Transformer(limits: ImageLimits()).transform($0, into: [variant])
                    }
                } == .encode)
        }
    }

    @Test func aDeviceAsSourceIsATransformFailure() throws {
        let device = try FileDescriptor.open("/dev/zero", .readOnly)
        try device.closeAfter {
            #expect(failure { _ = try Transformer(limits: ImageLimits()).facts(of: device) } == .transform)
        }
    }
}
