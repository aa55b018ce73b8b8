import Core
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

/// Cases of SDWebImage's own tests of its coders that no other suite has.
@Suite(.timeLimit(.minutes(15)))
struct ChecklistTests {
    private static func source(_ format: ImageFormat) throws -> [UInt8] {
        switch format {
        case .heic, .bmp, .qoi: return SampleImage.bytes(of: format)
        case .gif: return TestImages.gif(120, 90)
        default: return try make(one: TestImages.png(120, 90), "120x,\(format.rawValue)")
        }
    }

    // MARK: - Sizes

    @Test(arguments: ImageFormat.allCases)
    func everyFormatIsResizedWithFillAndInsideAndEncodedAgain(format: ImageFormat) throws {
        let source = try Self.source(format)
        let size = try facts(source)
        // HEIC, BMP and QOI are only read.
        let own = VariantSpec.Output(rawValue: format.rawValue) ?? .webp
        let made = try make(
            source, "filled=50x50,fill,enlarge fitted=50x50,enlarge same=\(size.width)x,\(own.rawValue)")
        #expect(made.report.renditions.last?.formatName == own.rawValue)
        let sizes = made.report.renditions.map { [$0.width, $0.height] }
        let isSquare = size.width == size.height
        #expect(sizes == [[50, 50], [50, isSquare ? 50 : 38], [size.width, size.height]])
        for (file, wanted) in zip(made.files, sizes) {
            let again = try facts(file)
            #expect([again.width, again.height] == wanted && again.frames == 1)
        }
    }

    @Test(arguments: [0, 1, 7], ["gif", "webp"])
    func animationsKeepTheirLoopsAndFrames(loopCount: Int, format: String) throws {
        var gif = TestGIF(width: 60, height: 40, loopCount: loopCount)
        gif.frames = (0..<4).map { TestGIF.Frame(60, 40, seed: $0) }
        let source = try format == "gif" ? gif.bytes : make(one: gif.bytes, "60x,webp")
        for spec in ["50x50,fill,enlarge", "50x50", "60x40,\(format == "gif" ? "webp" : "gif")"] {
            let film = try Film(make(one: source, spec))
            // A GIF counts the repetitions after the first time.
            #expect(film.loopCount == (loopCount == 0 ? 0 : loopCount + 1) && film.frames.count == 4, "\(spec)")
        }
    }

    @Test func aGIFWithoutALoopBlockPlaysOnce() throws {
        var gif = TestGIF(width: 20, height: 10)
        gif.frames = (0..<2).map { TestGIF.Frame(20, 10, seed: $0) }
        for format in ["gif", "webp"] { #expect(try Film(make(one: gif.bytes, "10x,\(format)")).loopCount == 1) }
    }

    // MARK: - Large images

    struct Large: Sendable, CustomTestStringConvertible {
        let width, height: Int
        let bytes: String
        let size: [Int]
        var testDescription: String { "\(width)×\(height), \(bytes) bytes" }
    }

    @Test(arguments: [
        // SDWebImage's own example; an unoptimised scaler takes a minute for it.
        Large(width: 5_250, height: 3_450, bytes: "62914560", size: [4_892, 3_214]),
        Large(width: 2_000, height: 2_000, bytes: "4000000", size: [1_000, 1_000]),
        Large(width: 300, height: 200, bytes: "1", size: [1, 1]),
        Large(width: 1, height: 900, bytes: "1", size: [1, 1]),
        Large(width: 300, height: 200, bytes: "240000", size: [300, 200]),
        Large(width: 300, height: 200, bytes: "62914560", size: [300, 200]),
    ])
    func largeImagesAreScaledDownToTheirBytes(_ large: Large) throws {
        let source = TestImages.pngOfZeros(large.width, large.height, colour: [200, 100, 50])
        let made = try make(source, "v=\(large.width)x,jpeg,q95,scale-down-large-images:\(large.bytes)")
        let size = try #require(made.report.renditions.first)
        #expect([size.width, size.height] == large.size)
        let raster = try Raster(#require(made.files.first))
        for row in [0, raster.height / 2, raster.height - 1] {
            for column in [0, raster.width - 1] {
                #expect(isNear(raster[column, row], [200, 100, 50], within: 4), "(\(column), \(row))")
            }
        }
    }

    /// Each way of decoding: in full size, scaled by the decoder, and frame by frame.
    @Test(arguments: ImageFormat.allCases + [nil]) func everyFormatIsScaledDown(format: ImageFormat?) throws {
        let picture = TestImages.png(160, 120)
        let source: [UInt8] =
            switch format {
            case .heic: SampleImage.bytes(of: .heic)
            case .bmp: TestImages.bmp(160, 120)
            case .qoi: TestImages.qoi(160, 120)
            case .gif: TestImages.gif(160, 120)
            case let format?: try make(one: picture, "160x,\(format.rawValue)")
            case nil: TestImages.gif(160, 120, frames: [20, 90, 200])
            }
        let whole = try facts(source)
        // A quarter of the pixels, so half of each side.
        let bytes = whole.width * whole.height
        let (width, height) = (Int((Double(whole.width) / 2).rounded()), Int((Double(whole.height) / 2).rounded()))
        for output in ["png", "jpeg", "webp", "gif"] {
            let made = try make(source, "v=x,\(output),scale-down-large-images:\(bytes)")
            let rendition = try #require(made.report.renditions.first)
            #expect(abs(rendition.width - width) <= 1 && abs(rendition.height - height) <= 1, "\(output)")
            #expect(rendition.width * rendition.height * 4 <= bytes, "\(output)")
            #expect(
                try make(source, "v=x,\(output),scale-down-large-images").report.renditions.first?.width == whole.width)
        }
    }

    // MARK: - Encoding

    @Test(arguments: [("rgba(0,0,255)", [0, 0, 255]), ("fedcba", [0xFE, 0xDC, 0xBA])])
    func transparentPixelsShowTheBackgroundInAJPEG(name: String, colour: [Int]) throws {
        let clear = TestImages.png(40, 40, kind: .rgba, pixel: TestImages.solid((255, 0, 0, 0)))
        let hex = colour.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        for size in ["20x", "40x", "40x20,contain"] {
            let raster = try Raster(make(one: clear, "\(size),jpeg,q100,background:\(hex)"))
            #expect(isNear(raster[2, 2], colour, within: 4), "\(name), \(size)")
        }
    }

    @Test(arguments: ["jpeg", "webp", "avif", "jxl"]) func aFileIsNoLargerThanMaxBytes(format: String) throws {
        let noise = TestImages.png(120, 120) { x, y in
            (UInt8(x * y * 7 & 255), UInt8((x * 31 ^ y * 17) & 255), UInt8((x * x + y) & 255), 255)
        }
        let best = try make(one: noise, "120x,\(format),q95").count
        let least = try make(one: noise, "120x,\(format),q1").count
        let most = (best + least) / 2
        let file = try make(one: noise, "120x,\(format),q95,max-bytes:\(most)")
        #expect(file.count <= most && file.count > least)
        #expect(failure { _ = try make(one: noise, "120x,\(format),max-bytes:\(least / 2)") } == .encode)
    }

    @Test(arguments: ["png", "webp,lossless"]) func sixteenBitsAndPalettesKeepTheirAlpha(format: String) throws {
        for kind in [TestImages.PNGKind.rgba16, .indexedWithAlpha] {
            let source = TestImages.png(40, 40, kind: kind) { x, _ in (x < 20 ? 10 : 200, 9, 9, x < 20 ? 0 : 255) }
            for size in ["40x", "20x", "80x,enlarge"] {
                let raster = try Raster(make(one: source, "\(size),\(format)"))
                #expect(raster[1, 5].last == 0, "\(kind), \(size)")
                let right = raster[raster.width - 2, 5]
                #expect(right.count % 2 == 1 || right.last == 255, "\(kind), \(size)")
                #expect(abs(right[0] - 200) <= 1)
            }
        }
    }
}

/// The same for photographs, compared with other programs.
@Suite(.timeLimit(.minutes(15)), .enabled(if: Corpus.isThere, "\(Corpus.missing)"))
struct PhotographTests {
    private static let hasVips = ChildProcess.find("vips") != nil
    private static let hasImageMagick = ChildProcess.find("convert") != nil

    /// A file as another program has it, in PNG.
    private static func converted(_ file: FilePath, _ command: (String, String) -> [String]) throws -> Raster {
        try withTemporaryDirectory { folder in
            let output = folder.appending("out.png")
            let words = command(file.string, output.string)
            #expect(try ChildProcess.run(words[0], Array(words.dropFirst())) == 0, "\(words)")
            return try Raster(Corpus.bytes(output))
        }
    }

    private static func ours(_ file: FilePath) throws -> Raster {
        let bytes = try Corpus.bytes(file)
        let width = try facts(bytes).width
        return try Raster(make(one: bytes, "\(width)x,png"))
    }

    @Test(.enabled(if: hasVips, "The command-line tools of libvips are not installed."))
    func displayP3BecomesSRGB() throws {
        let file = Corpus.directory.appending("samples/image-p3.jpg")
        let theirs = try Self.converted(file) { ["vips", "icc_transform", $0, "\($1)[strip]", "srgb", "--embedded"] }
        let raw = try Self.converted(file) { ["vips", "copy", $0, "\($1)[strip]"] }
        let ours = try Self.ours(file)
        #expect(ours.size == theirs.size)
        #expect(ours.difference(to: theirs) < 0.6, "\(ours.difference(to: theirs))")
        #expect(ours.difference(to: raw) > ours.difference(to: theirs) * 3, "\(ours.difference(to: raw))")
    }

    @Test(.enabled(if: hasImageMagick, "ImageMagick is not installed."))
    func greyAndProgressivePicturesHaveThePixelsOfImageMagick() throws {
        for name in ["grayscale.jpeg", "progressive.jpeg", "baseline.webp", "swift.png"] {
            let file = Corpus.directory.appending("samples/\(name)")
            let theirs = try Self.converted(file) { ["convert", $0, "-strip", "-define", "png:color-type=2", $1] }
            let ours = try Self.ours(file)
            #expect(ours.size == theirs.size, "\(name)")
            // Of what has an alpha, only the visible.
            guard ours.channels % 2 == 1 else { continue }
            let step = ours.channels == 1 ? 3 : 1
            let grey =
                step == 3 ? stride(from: 0, to: theirs.bytes.count, by: 3).map { theirs.bytes[$0] } : theirs.bytes
            let same = grey.count == ours.bytes.count
            let total = zip(grey, ours.bytes).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
            #expect(same && Double(total) / Double(ours.bytes.count) < 1, "\(name): \(total)")
        }
    }

    /// A JPEG of four inverted inks, as Adobe's programs write them.
    @Test(.enabled(if: hasImageMagick, "ImageMagick is not installed."))
    func aCMYKJPEGIsDecoded() throws {
        try withTemporaryDirectory { folder in
            let jpeg = folder.appending("cmyk.jpg")
            let command = ["-size", "40x30", "xc:red", "-colorspace", "CMYK", "-quality", "95", jpeg.string]
            #expect(try ChildProcess.run("convert", command) == 0)
            let pixel = try Raster(make(one: Corpus.bytes(jpeg), "20x,png"))[10, 7]
            #expect(pixel.count == 3 && pixel[0] > 200 && pixel[1] < 90 && pixel[2] < 90, "\(pixel)")
        }
    }
}
