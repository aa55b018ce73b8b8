import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Decompression bombs: refused with their class before they cost memory or time.
@Suite(.serialized, .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt)) struct BombTests {
    struct Bomb: Sendable, CustomTestStringConvertible {
        let name: String
        /// The ends it may have.
        let ends: Set<String>
        var megabytes = 200
        let make: @Sendable () -> [UInt8]

        var testDescription: String { name }
    }

    static let bombs = [
        Bomb(name: "PNG of 50,000 × 50,000", ends: ["too-many-pixels"]) {
            TestImages.pngHeaderOnly(50_000, 50_000) + TestImages.pngOfZeros(500, 500).dropFirst(33)
        },
        Bomb(name: "PNG with a gigabyte of text", ends: ["done"]) {
            TestImages.pngOfZeros(
                64, 64, extra: [TestImages.pngChunk("zTXt", Array("a".utf8) + [0, 0] + TestImages.zlibZeros(1 << 30))])
        },
        Bomb(name: "PNG with a profile of a gigabyte", ends: ["done"]) {
            TestImages.pngOfZeros(
                64, 64, extra: [TestImages.pngChunk("iCCP", Array("a".utf8) + [0, 0] + TestImages.zlibZeros(1 << 30))])
        },
        Bomb(name: "PNG with a gigabyte of translated text", ends: ["done"]) {
            TestImages.pngOfZeros(
                64, 64,
                extra: [TestImages.pngChunk("iTXt", [97, 0, 1, 0, 101, 110, 0, 0] + TestImages.zlibZeros(1 << 30))])
        },
        Bomb(name: "PNG with four hundred texts of a megabyte", ends: ["done"]) {
            let text = TestImages.pngChunk("zTXt", Array("a".utf8) + [0, 0] + TestImages.zlibZeros(1 << 20))
            return TestImages.pngOfZeros(64, 64, extra: Array(repeating: text, count: 400))
        },
        Bomb(name: "PNG with a megabyte of text", ends: ["done"]) {
            TestImages.pngOfZeros(
                64, 64, extra: [TestImages.pngChunk("zTXt", Array("a".utf8) + [0, 0] + TestImages.zlibZeros(1 << 20))])
        },
        Bomb(name: "GIF with a canvas of 65,535 × 65,535", ends: ["too-many-pixels"]) {
            Array("GIF89a".utf8) + [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0] + TestImages.gif(8, 8).dropFirst(13)
        },
        Bomb(name: "animated WebP with a huge canvas", ends: ["too-many-pixels"]) {
            TestImages.webp(16_384, 16_384, frames: 3)
        },
        Bomb(name: "animated WebP of 100,000 frames", ends: ["too-many-pixels"]) {
            TestImages.webp(64, 64, frames: 100_000)
        },
        Bomb(name: "TIFF of 60,000 × 60,000", ends: ["too-many-pixels"]) {
            TestImages.tiff(claiming: 60_000, 60_000, rowsPerStrip: 60_000)
        },
        Bomb(name: "TIFF with a strip of 2 GiB", ends: ["bad-image", "truncated"]) {
            TestImages.tiff(claiming: 9_000, 9_000, rowsPerStrip: 0x7FFF_FFFF, stripBytes: 0x7FFF_FFFF)
        },
        Bomb(name: "TIFF with 4 billion rows a strip", ends: ["bad-image", "truncated"]) {
            TestImages.tiff(claiming: 9_000, 9_000, rowsPerStrip: 0xFFFF_FFFF, stripBytes: 0xFFFF_FFFF)
        },
        Bomb(name: "TIFF whose directory follows itself", ends: ["done", "bad-image"]) {
            TestImages.tiff(claiming: 4, 2, rowsPerStrip: 2, next: 8)
        },
        Bomb(name: "TIFF of 60,000 directories", ends: ["done", "bad-image", "too-many-pixels"]) {
            TestImages.tiff(claiming: 4, 2, rowsPerStrip: 2, directories: 60_000)
        },
        Bomb(name: "JPEG of 10,000 scans", ends: ["too-many-pixels"]) { TestImages.jpeg(1_000, 1_000, scans: 10_000) },
        Bomb(name: "sequential JPEG of 10,000 scans", ends: ["too-many-pixels"]) {
            TestImages.jpeg(500, 500, scans: 10_000, isProgressive: false, sampling: [(1, 1), (1, 1), (1, 1)])
        },
        Bomb(name: "JPEG whose coefficients need a gigabyte", ends: ["too-many-pixels"]) {
            TestImages.jpeg(9_999, 9_999, scans: 3, sampling: Array(repeating: (1, 1), count: 4))
        },
    ]

    @Test(arguments: bombs) func aBombEndsInItsClassWithLittleMemoryAndTime(_ bomb: Bomb) async throws {
        let file = bomb.make()
        try await PictureHelper.lend { helper in
            let answer = try await helper.make(file, "a=64x64,webp b=64x64")
            #expect(bomb.ends.contains(answer.end) && answer.seconds < 5 && answer.peak < bomb.megabytes, "\(answer)")
            let next = try await helper.make(TestImages.png(20, 20), "a=10x,webp")
            #expect(next.isDone, "It goes on: \(next)")
        }
    }

    /// Kept metadata are decompressed.
    @Test(arguments: ["keep-metadata", "keep-profile", "keep-metadata,keep-profile"])
    func aBombInMetadataIsRefusedWhenMetadataAreKept(options: String) async throws {
        try await PictureHelper.lend { helper in
            for bomb in Self.bombs where bomb.name.hasPrefix("PNG with") {
                let answer = try await helper.make(bomb.make(), "a=64x64,png,\(options)")
                #expect(bomb.ends.contains(answer.end) && answer.seconds < 15 && answer.peak < 200, "\(answer)")
            }
        }
    }

    /// Encoders write up to this number of scans.
    @Test func aJPEGOfAHundredScansIsDecoded() async throws {
        try await PictureHelper.lend { helper in
            let answer = try await helper.make(TestImages.jpeg(400, 300, scans: 100), "a=64x64,webp")
            #expect(answer.isDone, "\(answer)")
        }
    }
}
