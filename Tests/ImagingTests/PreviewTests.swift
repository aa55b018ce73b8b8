import Core
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

@Suite(.timeLimit(.minutes(15)))
struct PreviewTests {
    private struct Look {
        let report: PreviewReport
        let picture: Raster?
    }

    private static let photograph = TestImages.png(240, 160) { x, y in
        (UInt8(x), UInt8(y), UInt8((x * y / 40) % 256), 255)
    }

    private func look(_ bytes: some Sequence<UInt8>) throws -> Look? {
        let bytes = Array(bytes)
        return try withFile(bytes) { source in
            try withFile([]) { output in
                let maker = PreviewMaker(limits: ImageLimits())
                guard let report = try maker.preview(source, count: bytes.count, into: output) else { return nil }
                let file = try readAll(output)
                return Look(report: report, picture: file.isEmpty ? nil : try Raster(file))
            }
        }
    }

    @Test func aProgressiveJPEGHasAWholePreviewFromItsFirstScanOn() throws {
        let file = try make(one: Self.photograph, "x,jpeg,progressive,q90")
        let whole = try Raster(file)
        var differences: [Double] = []
        for share in [0.05, 0.3, 0.5, 0.7, 0.9] {
            guard let look = try look(file.prefix(Int(Double(file.count) * share))) else { continue }
            #expect(look.report.width == 240 && look.report.height == 160 && look.report.format == .jpeg)
            guard let picture = look.picture else { continue }
            #expect(look.report.rows == 160 && picture.size == "240x160")
            differences.append(picture.difference(to: whole))
        }
        #expect(differences.count >= 3)
        // It sharpens, and even the first is the picture and not grey.
        #expect(differences == differences.sorted(by: >))
        #expect(try #require(differences.first) < 30 && #require(differences.last) < 6)
    }

    @Test(arguments: ["x,jpeg,q90", "x,jpeg,q80,chroma:420", "x,png", "x,gif"])
    func aPreviewFromTheTopShowsItsCompleteRows(spec: String) throws {
        let file = try make(one: Self.photograph, spec)
        let whole = try Raster(file)
        var rows: [Int] = []
        for share in [0.3, 0.6, 0.9] {
            let look = try #require(try look(file.prefix(Int(Double(file.count) * share))))
            let picture = try #require(look.picture)
            #expect(picture.size == "240x\(look.report.rows)" && look.report.height == 160)
            // The last row is the picture's, and not what a decoder had there before.
            let last = look.report.rows - 1
            let (seen, wanted) = (picture[100, last].prefix(2), whole[100, last].prefix(2))
            #expect(isNear(Array(seen), Array(wanted), within: 60), "\(last)")
            rows.append(look.report.rows)
        }
        #expect(rows == rows.sorted() && Set(rows).count == 3 && rows[0] >= 16 && rows[2] < 160)
    }

    @Test func anInterlacedPNGHasAWholePreviewFromItsFirstPassOn() throws {
        let file = try make(one: Self.photograph, "x,png,progressive")
        let whole = try Raster(file)
        var differences: [Double] = []
        for share in [0.2, 0.5, 0.8] {
            let look = try #require(try look(file.prefix(Int(Double(file.count) * share))))
            #expect(look.report.rows == 160)
            differences.append(try #require(look.picture).difference(to: whole))
        }
        #expect(differences == differences.sorted(by: >) && differences[0] < 40)
        // Of the first pass a part.
        let first = try #require(try look(file.prefix(90 + file.count / 100)))
        #expect(first.report.rows % 8 == 0 && first.report.rows < 160)
    }

    @Test func anInterlacedGIFHasAWholePreviewFromItsFirstPassOn() throws {
        var gif = TestGIF(width: 64, height: 64, loopCount: nil)
        gif.frames = [TestGIF.Frame(64, 64, seed: 1)]
        gif.frames[0].isInterlaced = true
        let file = gif.bytes
        let look = try #require(try look(file.prefix(file.count / 2)))
        #expect(look.report.rows == 64 && look.picture?.size == "64x64")
    }

    @Test func thePreviewOfAnAnimationIsItsFirstFrame() throws {
        var gif = TestGIF(width: 60, height: 40, loopCount: 0)
        gif.frames = (0..<4).map { TestGIF.Frame(60, 40, seed: $0) }
        for file in try [gif.bytes, make(one: gif.bytes, "60x,png")] {
            let look = try #require(try look(file.prefix(file.count * 2 / 3)))
            #expect(look.report.rows == 40 && look.picture?.size == "60x40")
        }
    }

    @Test(arguments: ["x,webp,q90", "x,webp,lossless"])
    func thePreviewOfAWebPHasItsCompleteRows(spec: String) throws {
        let file = try make(one: Self.photograph, spec)
        let whole = try Raster(file)
        let look = try #require(try look(file.prefix(file.count * 2 / 3)))
        let picture = try #require(look.picture)
        #expect((16..<160).contains(look.report.rows) && picture.size == "240x\(look.report.rows)")
        // The last complete row is the picture's, not what a decoder had there before.
        let last = look.report.rows - 1
        #expect(isNear(picture[100, last], whole[100, last], within: 40))
    }

    @Test func anIncompleteHeaderHasNoPreview() throws {
        #expect(try look(Array("GIF8".utf8)) == nil)
        #expect(try look([]) == nil)
        #expect(try look(Array("<html>".utf8)) == nil)
    }

    @Test func noPrefixOfAnyFormatFails() throws {
        for format in ["jpeg,progressive", "webp", "webp,lossless", "png", "gif", "avif"] {
            let file = try make(one: Self.photograph, "60x,\(format)")
            for count in stride(from: 0, to: file.count, by: 41) { _ = try look(file.prefix(count)) }
        }
    }

    @Test func aLargePreviewIsScaledAndATooLargePictureIsRefused() throws {
        let large = TestImages.png(1_300, 650) { x, y in (UInt8(x % 256), UInt8(y % 256), 0, 255) }
        let file = try make(one: large, "x,jpeg,progressive,q60")
        let look = try #require(try look(file.dropLast(2)))
        #expect(look.report.width == 1_300 && look.picture?.size == "640x320")
        let refused = failure {
            try withFile(file) { source in
                try withFile([]) {
                    _ = try PreviewMaker(limits: ImageLimits(pixels: 1_000)).preview(
                        source, count: file.count, into: $0)
                }
            }
        }
        #expect(refused == .tooManyPixels)
    }
}
