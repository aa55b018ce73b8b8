import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

@Suite(.timeLimit(.minutes(15)))
struct StillGIFTests {
    private static func colours(_ file: [UInt8]) throws -> Set<[Int]> {
        let raster = try Raster(file)
        return Set((0..<(raster.width * raster.height)).map { raster[$0 % raster.width, $0 / raster.width] })
    }

    @Test(arguments: [2, 3, 16, 100, 200, 256]) func aStillGIFHasUpToTheGivenNumberOfColours(most: Int) throws {
        let photo = TestImages.png(120, 90) { x, y in (UInt8(x * 2), UInt8(y * 2), UInt8((x + y) & 255), 255) }
        let colours = try Self.colours(make(one: photo, "x,gif,colours:\(most)"))
        #expect(colours.count <= most && colours.count > most * 2 / 3, "\(colours.count)")
    }

    @Test func aStillGIFIsEncodedWithinMaxBytesByFewerColours() throws {
        let photo = TestImages.png(120, 90) { x, y in (UInt8(x * 2), UInt8(y * 2), UInt8((x + y) & 255), 255) }
        let (whole, least) = (try make(one: photo, "x,gif").count, try make(one: photo, "x,gif,colours:2").count)
        let most = (whole + least) / 2
        let made = try make(one: photo, "x,gif,max-bytes:\(most)")
        #expect((least...most).contains(made.count), "\(made.count) \(most)")
        #expect(try Self.colours(made).count > 2)
        #expect(failure { _ = try make(one: photo, "x,gif,max-bytes:\(least / 2)") } == .encode)
    }

    @Test func picturesOfFewColoursAreExact() throws {
        let drawing = TestImages.png(60, 40) { x, y in (UInt8(x / 8 * 30), UInt8(y / 8 * 40), 77, 255) }
        #expect(try Raster(make(one: drawing, "x,gif")).difference(to: Raster(drawing)) == 0)
    }

    @Test func greyAndTransparentPicturesKeepTheirColours() throws {
        let grey = TestImages.png(40, 40, kind: .grey, pixel: TestImages.solid((77, 0, 0, 255)))
        #expect(try Raster(make(one: grey, "20x,gif"))[9, 9] == [77, 77, 77])
        let clear = TestImages.png(40, 40, kind: .rgba) { x, _ in (200, 100, 50, x < 20 ? 40 : 200) }
        let raster = try Raster(make(one: clear, "x,gif"))
        #expect(raster[5, 5].last == 0 && raster[30, 5] == [200, 100, 50, 255], "\(raster[30, 5])")
    }

    @Test func aStillGIFHasArtistAndCopyrightInAComment() throws {
        let exif = EXIF(camera: "Box 3", artist: "Ann", copyright: "Ann and sons 2024")
        let still = try make(one: TestImages.png(24, 16), "x,webp")
        let packet = Array("<x:xmpmeta xmlns:x='adobe:ns:meta/'/>".utf8)
        let source = try AnimationMetadataTests.file(still, [("exif", exif.bytes), ("xmp", packet)])
        let made = try make(source, "a=12x,gif b=12x,gif,strip-copyright c=12x,gif,keep-metadata")
        let comment = Array("Copyright: Ann and sons 2024".utf8)
        #expect(made.files.map { $0.contains(comment) } == [true, false, true])
        #expect(made.files.map { $0.contains(packet) } == [false, false, true])
        #expect(try made.files.allSatisfy { try Raster($0).width == 12 })
    }

    /// The file has one frame and no loop block.
    @Test func aStillGIFIsNoAnimation() throws {
        let file = try make(one: TestImages.png(24, 16), "x,gif")
        #expect(
            !file.contains(Array("NETSCAPE".utf8)) && (file.withUnsafeBytes { AnimationFacts(gif: $0)?.frames == 1 }))
    }
}
