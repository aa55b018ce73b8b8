import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// HEIC and AVIF whose boxes disagree on how large the picture is.
@Suite(.serialized, .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt)) struct GridBombTests
{
    /// The sample, a grid of 16×16 made of one tile of 64×64, with other numbers in it.
    private static func heic(grid: (Int, Int)?, extent: (Int, Int)?, tile: (Int, Int)? = nil) -> [UInt8] {
        var file = SampleImage.bytes(of: .heic)
        func replace(_ old: [UInt8], _ new: [UInt8]) {
            guard let place = file.firstRange(of: old) else { return }
            file.replaceSubrange(place, with: new)
        }
        if let grid {
            let data = Array("idat".utf8) + [0, 0, 0, 0]
            replace(data + [0, 16, 0, 16], data + TestImages.big(grid.0, 2) + TestImages.big(grid.1, 2))
        }
        let box = Array("ispe".utf8) + TestImages.big(0, 4)
        if let extent {
            replace(
                box + TestImages.big(16, 4) + TestImages.big(16, 4),
                box + TestImages.big(extent.0, 4) + TestImages.big(extent.1, 4))
        }
        if let tile {
            replace(
                box + TestImages.big(64, 4) + TestImages.big(64, 4),
                box + TestImages.big(tile.0, 4) + TestImages.big(tile.1, 4))
        }
        return file
    }

    private static func avif(extent: (Int, Int)) -> [UInt8] {
        var file = SampleImage.bytes(of: .avif)
        let box = Array("ispe".utf8) + TestImages.big(0, 4)
        if let place = file.firstRange(of: box + TestImages.big(16, 4) + TestImages.big(16, 4)) {
            file.replaceSubrange(place, with: box + TestImages.big(extent.0, 4) + TestImages.big(extent.1, 4))
        }
        return file
    }

    struct Bomb: Sendable, CustomTestStringConvertible {
        let name: String
        let ends: Set<String>
        let file: [UInt8]
        var testDescription: String { name }
    }

    static let bombs = [
        Bomb(name: "extent of 60,000", ends: ["too-many-pixels"], file: heic(grid: nil, extent: (60_000, 60_000))),
        Bomb(
            name: "grid of 65,535", ends: ["too-many-pixels"], file: heic(grid: (65_535, 65_535), extent: nil)
        ),
        Bomb(
            name: "grid of 30,000", ends: ["too-many-pixels"], file: heic(grid: (30_000, 30_000), extent: nil)
        ),
        Bomb(
            name: "grid and extent of 30,000", ends: ["too-many-pixels"],
            file: heic(grid: (30_000, 30_000), extent: (30_000, 30_000))),
        Bomb(
            name: "grid and extent of 8,000", ends: ["bad-image"],
            file: heic(grid: (8_000, 8_000), extent: (8_000, 8_000))),
        Bomb(name: "one tile that is a pixel short", ends: ["bad-image"], file: heic(grid: (65, 65), extent: (65, 65))),
        Bomb(name: "one tile that is just enough", ends: ["done"], file: heic(grid: (64, 64), extent: (64, 64))),
        Bomb(
            name: "tile of 60,000", ends: ["too-many-pixels"],
            file: heic(grid: nil, extent: nil, tile: (60_000, 60_000))),
        Bomb(name: "AVIF's extent of 60,000", ends: ["too-many-pixels"], file: avif(extent: (60_000, 60_000))),
        Bomb(name: "AVIF's extent of 8,000", ends: ["bad-image"], file: avif(extent: (8_000, 8_000))),
    ]

    @Test(arguments: bombs) func aGridBombEndsInItsClassWithLittleMemoryAndTime(_ bomb: Bomb) async throws {
        try await PictureHelper.lend { helper in
            let answer = try await helper.make(bomb.file, "a=64x64,webp b=64x64")
            #expect(bomb.ends.contains(answer.end) && answer.seconds < 5 && answer.peak < 200, "\(answer)")
        }
    }
}
