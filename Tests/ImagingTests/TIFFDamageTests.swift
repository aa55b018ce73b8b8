import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Deflated TIFFs with wrong bytes, which libtiff notices only if inflating fails.
@Suite(.timeLimit(.minutes(15)))
struct TIFFDamageTests {
    private static let specs = ["", "a=x,png", "a=40x,jpeg b=16x,webp", "a=x,tiff", "a=x,png,keep-profile"]

    private static func code(_ bytes: [UInt8], _ specs: String) -> FailureClass? {
        failure { _ = try make(bytes, specs) }
    }

    /// Several strips; the directory lies behind them.
    private static func strips() throws -> [UInt8] {
        let noise = TestImages.png(200, 300) { x, y in
            (UInt8(x * y * 7 & 255), UInt8((x * 31 ^ y * 17) & 255), UInt8((x * x + y) & 255), 255)
        }
        return try make(one: noise, "x,tiff")
    }

    /// One tile of 64×64, stored in zlib's form without being made smaller, so that any byte can be any other.
    private static func tile(compression: Int = 8) -> [UInt8] {
        let samples = (0..<(64 * 64 * 3)).map { UInt8($0 * 7 & 255) }
        let data = TestImages.zlibStored(samples)
        return TestImages.tiff(
            64, 64, samples: data, channels: 3, photometric: 2,
            tags: [
                (259, 3, [compression]), (273, 4, []), (278, 4, []), (279, 4, []), (322, 4, [64]), (323, 4, [64]),
                (324, 4, [8]), (325, 4, [data.count]),
            ])
    }

    @Test func wholeFilesAreAccepted() throws {
        for bytes in [try Self.strips(), Self.tile(), Self.tile(compression: 32_946)] {
            for specs in Self.specs { #expect(Self.code(bytes, specs) == nil, "'\(specs)'") }
        }
    }

    @Test(arguments: [1, 200], [0.01, 0.2, 0.5, 0.77, 0.9]) func wrongBytesInStripsAreABadImage(
        count: Int, part: Double
    ) throws {
        let whole = try Self.strips()
        let data = 8 + Int(Double(whole.count - 1_000) * part)
        // One that is zero already would be no damage.
        let place = try #require(whole[data...].firstIndex { $0 != 0 })
        var damaged = whole
        for index in place..<(place + count) { damaged[index] = 0 }
        for specs in Self.specs { #expect(Self.code(damaged, specs) == .badImage, "'\(specs)'") }
    }

    @Test(arguments: [8, 32_946]) func wrongBytesInTilesAreABadImage(compression: Int) {
        let whole = Self.tile(compression: compression)
        for place in [100, 5_000, 12_000] {
            var damaged = whole
            damaged[place] ^= 0x40
            for specs in Self.specs { #expect(Self.code(damaged, specs) == .badImage, "\(place), '\(specs)'") }
        }
        // The checksum itself: it ends the data.
        var damaged = whole
        damaged[8 + TestImages.zlibStored([UInt8](repeating: 0, count: 64 * 64 * 3)).count - 1] ^= 1
        #expect(Self.code(damaged, "") == .badImage)
    }

    /// Invalid numbers in the directory end its check.
    @Test func mutatedDirectoriesNeverTrap() throws {
        let whole = Self.tile()
        var random = SeededGenerator(seed: 23)
        for _ in 0..<3_000 {
            var other = whole
            for _ in 0..<3 {
                let place = Int.random(in: (whole.count - 200)..<whole.count, using: &random)
                other[place] = .random(in: 0...255, using: &random)
            }
            other.withUnsafeBytes { _ = TIFFDeflate(ByteReader($0))?.objection }
            other.prefix(.random(in: 0..<whole.count, using: &random)).withUnsafeBytes {
                _ = TIFFDeflate(ByteReader($0))?.objection
                _ = TIFFDirectory(ByteReader($0)).pointsPastTheEnd
                _ = TIFFColours(TIFFDirectory(ByteReader($0))).objection
            }
        }
    }

    /// Data far larger than the tile are no padding.
    @Test func moreDataThanTheTileHoldsIsABadImage() {
        let data = TestImages.zlibZeros(1 << 24)
        let file = TestImages.tiff(64, 64, samples: data, channels: 3, photometric: 2, tags: [(259, 3, [8])])
        #expect(Self.code(file, "a=x,png") == .badImage)
        let padded = TestImages.zlibZeros(64 * 64 * 3 + 500)
        let whole = TestImages.tiff(64, 64, samples: padded, channels: 3, photometric: 2, tags: [(259, 3, [8])])
        #expect(Self.code(whole, "a=x,png") == nil)
    }
}
