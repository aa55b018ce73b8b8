import Core
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Odd pictures that browsers show.
@Suite(.timeLimit(.minutes(15)))
struct BrowserTests {
    private static let picture = TestImages.png(200, 150) { x, y in
        (UInt8(x * y * 7 & 255), UInt8((x * 31 ^ y * 17) & 255), UInt8((x * x + y) & 255), 255)
    }

    // MARK: - JPEG without an end mark

    static let kinds = ["", ",progressive", ",chroma:444", ",q99"]

    @Test(arguments: kinds) func aJPEGWithoutItsEndMarkIsWhole(options: String) throws {
        let whole = try make(one: Self.picture, "200x,jpeg\(options)")
        let cut = Array(whole.dropLast(2))
        for specs in ["", "v=x,png", "v=16x,png", "v=90x,webp w=40x,png"] {
            #expect(try make(cut, specs).files == make(whole, specs).files, "\(specs)")
        }
        // Half of the mark, too.
        #expect(try make(one: Array(whole.dropLast()), "x,png") == make(one: whole, "x,png"))
    }

    @Test func aGreyJPEGWithoutItsEndMarkIsWhole() throws {
        let grey = TestImages.png(90, 70, kind: .grey) { x, y in (UInt8(x * y & 255), 0, 0, 255) }
        let whole = try make(one: grey, "x,jpeg")
        #expect(try make(one: Array(whole.dropLast(2)), "x,png") == make(one: whole, "x,png"))
    }

    /// The last interval ends at the missing end mark, as the other intervals end at restart markers.
    @Test(arguments: [[], ["--interlace"], ["--subsample-mode", "off"], ["--Q", "97"]])
    func `A JPEG with restart markers and without its end mark is whole`(_ options: [String]) throws {
        let whole = try jpegWithRestartMarkers(Self.picture, options)
        #expect(whole.suffix(2) == [0xFF, 0xD9])
        for missing in 1...2 {
            let cut = Array(whole.dropLast(missing))
            for specs in ["", "v=x,png", "v=16x,png", "v=90x,webp w=40x,png"] {
                #expect(try make(cut, specs).files == make(whole, specs).files, "\(missing), \(specs)")
            }
        }
        // One that ends at a marker between two pieces lacks all that would follow.
        let marks = whole.indices.dropLast(2).filter { whole[$0] == 0xFF && (0xD0...0xD7).contains(whole[$0 + 1]) }
        #expect(marks.count > 20)
        for mark in [marks[marks.count / 2], marks[marks.count - 2]] {
            for cut in [mark, mark + 2] {
                #expect(failure { _ = try make(Array(whole[..<cut]), "v=x,png") } == .truncated, "\(cut)")
            }
        }
    }

    @Test(arguments: kinds) func aJPEGThatLacksPixelsIsTruncated(options: String) throws {
        let whole = try make(one: Self.picture, "200x,jpeg\(options)")
        let fifths = (1...4).map { whole.count * $0 / 5 }
        for count in fifths + [whole.count - 40, whole.count - 10] {
            for specs in ["", "v=x,png", "v=16x,png"] {
                #expect(failure { _ = try make(Array(whole[..<count]), specs) } == .truncated, "\(count), \(specs)")
            }
        }
    }

    /// Each scan makes a complete picture, and no library warns of a cut between two scans.
    @Test func aProgressiveJPEGThatLacksScansIsTruncated() throws {
        let whole = try make(one: Self.picture, "200x,jpeg,progressive")
        let starts = whole.indices.dropLast(2).filter { whole[$0] == 0xFF && whole[$0 + 1] == 0xDA }
        let tables = whole.indices.dropLast(2).filter { whole[$0] == 0xFF && whole[$0 + 1] == 0xC4 }
        #expect(starts.count > 5)
        for place in starts.dropFirst() + tables where place > starts[0] {
            #expect(failure { _ = try make(Array(whole[..<place]), "v=20x,png") } == .truncated, "\(place)")
        }
    }

    // MARK: - GIFs and their screens

    private static func gif(screen: Int, _ frames: [TestGIF.Frame]) -> [UInt8] {
        var gif = TestGIF(width: screen, height: screen, loopCount: 0)
        gif.frames = frames
        return gif.bytes
    }

    @Test(arguments: [0, 1, 7]) func aGIFsScreenGrowsToItsFirstFrame(screen: Int) throws {
        let still = Self.gif(screen: screen, [TestGIF.Frame(40, 30)])
        let right = { () -> TestGIF in
            var gif = TestGIF(width: 40, height: 30, loopCount: 0)
            gif.frames = [TestGIF.Frame(40, 30)]
            return gif
        }()
        #expect(try facts(still) == facts(right.bytes))
        for spec in ["x,png", "20x,webp", "10x10,cover,jpeg"] {
            #expect(try make(one: still, spec) == make(one: right.bytes, spec))
        }
        // What is passed on is what came.
        #expect(try make(one: still, "x,gif").count > 0)
    }

    @Test func anAnimatedGIFsScreenGrowsToItsFirstFrame() throws {
        var second = TestGIF.Frame(60, 50, seed: 2)
        second.left = 10
        let small = Self.gif(screen: 8, [TestGIF.Frame(40, 30), second, TestGIF.Frame(8, 8, seed: 3)])
        var right = TestGIF(width: 40, height: 30, loopCount: 0)
        right.frames = [TestGIF.Frame(40, 30), second, TestGIF.Frame(8, 8, seed: 3)]
        #expect(try facts(small).width == 40 && facts(small).frames == 3)
        for spec in ["x,webp", "20x,gif", "20x,png"] {
            #expect(try make(one: small, spec) == make(one: right.bytes, spec), "\(spec)")
        }
    }

    @Test func aFirstFrameBeyondTheScreenGrowsTheScreen() throws {
        var frame = TestGIF.Frame(20, 20)
        (frame.left, frame.top) = (15, 5)
        let size = try facts(Self.gif(screen: 30, [frame]))
        #expect(size.width == 35 && size.height == 30)
    }

    @Test func theLimitHoldsForTheGrownScreen() throws {
        let gif = Self.gif(screen: 2, [TestGIF.Frame(400, 300)])
        #expect(failure { _ = try facts(gif, limits: ImageLimits(pixels: 100_000)) } == .tooManyPixels)
        #expect(failure { _ = try facts(Self.gif(screen: 0, [TestGIF.Frame(0, 0)])) } != nil)
    }

    // MARK: - Inks without a profile

    /// The light that cyan, magenta and yellow leave, and the part of that light that black leaves.
    @Test(.enabled(if: ChildProcess.find("vips") != nil, "The command-line tools of libvips are not installed."))
    func aCMYKJPEGWithoutAProfileLooksAsInBrowsers() throws {
        for inks: [UInt8] in [[255, 0, 0, 0], [30, 200, 90, 40], [0, 0, 0, 128], [10, 20, 30, 250], [0, 0, 0, 0]] {
            let pixel = TestImages.solid((inks[0], inks[1], inks[2], inks[3]))
            let tiff = TestImages.tiff(64, 64, kind: .cmyk, pixel: pixel)
            let expected = (0..<3).map { (255 - Int(inks[$0])) * (255 - Int(inks[3])) / 255 }
            #expect(isNear(try Raster(make(one: tiff, "x,png"))[9, 9], expected, within: 1))
            for specs in ["x,png", "16x,png", "x,png,keep-profile"] {
                let pixel = try Raster(make(one: Self.jpeg(of: tiff), specs))[9, 9]
                #expect(isNear(pixel, expected, within: 3), "\(inks) \(pixel) \(expected)")
            }
        }
    }

    private static func jpeg(of tiff: [UInt8]) throws -> [UInt8] {
        try withTemporaryDirectory { folder in
            let names = ["picture.tif", "picture.jpg"].map { folder.appending($0) }
            let file = try FileDescriptor.open(
                names[0], .writeOnly, options: [.create], permissions: [.ownerReadWrite])
            try file.closeAfter { _ = try file.writeAll(tiff) }
            #expect(try ChildProcess.run("vips", ["copy", names[0].string, "\(names[1])[Q=98,strip]"]) == 0)
            let jpeg = try FileDescriptor.open(names[1], .readOnly)
            return try jpeg.closeAfter { try readAll(jpeg) }
        }
    }
}
