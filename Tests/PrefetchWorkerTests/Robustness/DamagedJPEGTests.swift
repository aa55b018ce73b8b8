import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// A helper reads only suspicious JPEGs a second time, and must overlook no damage.
@Suite(.timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct DamagedJPEGTests {
    private static let picture = TestImages.png(200, 150) { x, y in
        (UInt8(x * y * 7 & 255), UInt8((x * 31 ^ y * 17) & 255), UInt8((x * x + y) & 255), 255)
    }

    @Test(arguments: ["", ",progressive"]) func noJPEGWithALibjpegWarningIsAccepted(options: String) async throws {
        try await PictureHelper.lend { helper in
            let made = try await helper.make(Self.picture, "a=200x,jpeg,q90\(options)")
            let whole = try #require(made.files.first)
            var random = SeededGenerator(seed: 7)
            var refused = 0
            for _ in 0..<200 {
                let bytes = Self.damaged(whole, &random)
                for variants in ["", "a=20x,webp", "a=x,png b=90x,jpeg"] {
                    let answer = try await helper.make(bytes, variants)
                    guard answer.isDone else {
                        #expect(answer.end == "bad-image", "\(answer)")
                        refused += 1
                        continue
                    }
                    let damage = bytes.withUnsafeBytes(JPEGDamage.description)
                    #expect(damage == nil, "\(answer)")
                }
            }
            #expect(refused > 10)
        }
    }

    /// Somewhere in the picture's data.
    private static func damaged(_ whole: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
        var bytes = whole
        let start = Int.random(in: 700..<whole.count - 100, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes.removeSubrange(start..<start + Int.random(in: 1...60, using: &random))
        case 1: bytes[start] ^= 1 << UInt8.random(in: 0...7, using: &random)
        default: bytes.replaceSubrange(start..<start + 30, with: [UInt8](repeating: 0, count: 30))
        }
        return bytes
    }

    /// libtiff only warns of this damage.
    @Test func aTIFFWithDamagedJPEGDataIsABadImage() async throws {
        try await PictureHelper.lend { helper in
            let made = try await helper.make(Self.picture, "a=200x,jpeg,q90")
            let jpeg = try #require(made.files.first)
            let whole = TestImages.tiff(of: jpeg, 200, 150)
            var damaged = whole
            let middle = 8 + jpeg.count / 2
            for place in middle..<middle + 2_000 { damaged[place] = 0 }
            for variants in ["", "a=20x,webp", "a=x,png"] {
                let answer = try await helper.make(whole, variants)
                #expect(answer.isDone, "\(answer)")
                let other = try await helper.make(damaged, variants)
                #expect(other.end == "bad-image", "\(other)")
            }
        }
    }
}
