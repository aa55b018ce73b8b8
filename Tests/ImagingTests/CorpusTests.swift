import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Real files. `malformed/LICENSE` names the makers of the malformed files.
@Suite(.timeLimit(.minutes(15)), .enabled(if: Corpus.isThere, "\(Corpus.missing)"))
struct CorpusTests {
    @Test(arguments: ["Landscape", "Portrait"])
    func photographsOfEveryOrientationHaveTheSamePixels(name: String) throws {
        let files = Corpus.files("orientation").filter { $0.lastComponent?.string.hasPrefix(name) == true }
        #expect(files.count == 9)
        let rasters = try files.map { try Raster(make(one: Corpus.bytes($0), "1200x1200,inside,png")) }
        let upright = try #require(rasters.dropFirst().first)
        #expect((upright.width > upright.height) == (name == "Landscape"))
        for (file, raster) in zip(files, rasters) {
            #expect(raster.size == upright.size, "\(file)")
            #expect(raster.difference(to: upright) < 10, "\(file): \(raster.difference(to: upright))")
        }
    }

    @Test func theSamplesDecode() throws {
        for file in Corpus.files("samples") {
            #expect(try make(Corpus.bytes(file), "v=40x,webp").report.renditions.count == 1, "\(file)")
        }
    }

    @Test(arguments: ["gif", "png", "jpeg", "webp", "tiff"])
    func malformedFilesSucceedOrFailWithAClass(folder: String) throws {
        let files = Corpus.files("malformed/\(folder)")
        for file in files.enumerated().filter({ $0.offset % 7 == 0 }).prefix(30).map(\.element) {
            let bytes = try Corpus.bytes(file)
            _ = failure { _ = try make(bytes, "v=32x,webp w=8x8,cover,png", limits: ImageLimits(pixels: 4_000_000)) }
        }
    }
}
