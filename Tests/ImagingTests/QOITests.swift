import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// QOI, by the specification's chunks: https://qoiformat.org/qoi-specification.pdf
@Suite(.timeLimit(.minutes(15)))
struct QOITests {
    private static func pixels(_ file: [UInt8], takesBeginning: Bool = false) throws -> [[UInt8]] {
        let image = try file.withUnsafeBytes {
            try QOICoder(takesBeginning: takesBeginning).decode($0, limits: ImageLimits())
        }
        return stride(from: 0, to: image.pixels.count, by: 4).map { Array(image.pixels[$0..<$0 + 4]) }
    }

    /// A run, small and larger steps, colours seen before, new alphas, and steps that wrap around.
    private static let picture: [[UInt8]] = {
        var random = SeededGenerator(seed: 11)
        var pixels = [[UInt8]](repeating: [0, 0, 0, 255], count: 70)
        while pixels.count < 60 * 40 {
            var next = pixels[pixels.count - 1]
            switch Int.random(in: 0..<6, using: &random) {
            case 0: break
            case 1: next = next.prefix(3).map { $0 &+ .random(in: 0...3, using: &random) &- 2 } + [next[3]]
            case 2:
                let step = UInt8.random(in: 0...63, using: &random) &- 32
                next = next.prefix(3).map { $0 &+ step &+ .random(in: 0...4, using: &random) } + [next[3]]
            case 3: next = pixels[Int.random(in: 0..<pixels.count, using: &random)]
            case 4: next = (0..<3).map { _ in .random(in: 0...255, using: &random) } + [next[3]]
            default: next = (0..<4).map { _ in .random(in: 0...255, using: &random) }
            }
            pixels.append(next)
        }
        return pixels
    }()

    private static let file = TestImages.qoi(60, 40, picture)

    @Test func pixelsAreReadUnchanged() throws {
        #expect(try Self.pixels(Self.file) == Self.picture)
        let facts = try facts(Self.file)
        #expect(facts.format == .qoi && facts.width == 60 && facts.height == 40 && facts.hasAlpha)
        #expect(facts.damage == nil)
    }

    @Test func eachKindOfChunkIsRead() throws {
        let chunks: [UInt8] = [
            0xFE, 200, 100, 50, 0x7B, 0xA1, 0x6C, 0xFF, 1, 2, 3, 4, 0xC1, 0xFE, 0, 255, 0, 0x4F, 0x20,
        ]
        let file = Array("qoif".utf8) + [0, 0, 0, 8, 0, 0, 0, 1, 4, 0] + chunks
        let expected: [[UInt8]] = [
            [200, 100, 50, 255], [201, 100, 51, 255], [200, 101, 56, 255], [1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4],
            [0, 255, 0, 4], [254, 0, 1, 4],
        ]
        // The last chunk isn't read any more: the picture has its eight pixels.
        #expect(try Self.pixels(file) == expected)
    }

    @Test func threeChannelsAreOpaque() throws {
        let file = TestImages.qoi(2, 1, channels: 3, [[9, 8, 7, 6], [1, 2, 3, 255]])
        #expect(try Self.pixels(file) == [[9, 8, 7, 255], [1, 2, 3, 255]])
        #expect(try !facts(file).hasAlpha)
        #expect(try make(file, "v=2x").report.renditions.map(\.format) == [.jpeg])
        #expect(try make(Self.file, "v=2x").report.renditions.map(\.format) == [.png])
    }

    @Test func linearLightBecomesSRGB() throws {
        let file = TestImages.qoi(3, 1, space: 1, [[0, 255, 55, 9], [1, 128, 200, 255], [10, 20, 30, 128]])
        #expect(try Self.pixels(file) == [[0, 255, 128, 9], [13, 188, 229, 255], [56, 79, 96, 128]])
    }

    /// The end mark of eight bytes may be missing.
    @Test func aFileCutAnywhereIsTruncated() throws {
        for length in 4..<Self.file.count - 8 {
            let part = Array(Self.file.prefix(length))
            let code = failure { _ = try Self.pixels(part) }
            #expect(code == .truncated, "cut to \(length) of \(Self.file.count)")
            guard length > 18 else { continue }
            let beginning = try Self.pixels(part, takesBeginning: true)
            let count = beginning.lastIndex { $0 != [0, 0, 0, 0] }.map { $0 + 1 } ?? 0
            #expect(Array(beginning.prefix(count)) == Array(Self.picture.prefix(count)))
        }
        #expect(try Self.pixels(Array(Self.file.dropLast(8))) == Self.picture)
    }

    @Test func theBeginningOfADamagedFileIsAcceptedWithAcceptDamaged() throws {
        let half = Array(Self.file.prefix(Self.file.count / 2))
        #expect(failure { _ = try make(half, "v=x,png") } == .truncated)
        let made = try make(half, "v=x,png", tolerance: DecodeTolerance(acceptsDamage: true))
        #expect(made.report.facts.damage != nil)
        let raster = try Raster(made.files[0])
        #expect(raster[0, 0] == [0, 0, 0, 255] && raster[59, 39].last == 0)
    }

    @Test(arguments: [(0xFFFF_FFFF, 0xFFFF_FFFF), (0xFFFF_FFFF, 1), (65_536, 65_536), (20_000, 20_000)])
    func aHugeSizeIsRefusedBeforeMemoryIsAllocated(width: Int, height: Int) {
        let file = TestImages.qoi(width, height, [])
        #expect(failure { _ = try facts(file) } == .tooManyPixels)
        #expect(failure { _ = try Self.pixels(file, takesBeginning: true) } == .tooManyPixels)
    }

    @Test func aPictureBeyondTheDecodersMemoryIsRefused() throws {
        let file = TestImages.qoi(9_000, 10_000, [[1, 2, 3, 4]])
        #expect(failure { _ = try facts(file) } == .tooManyPixels)
        try withFile(file) { #expect(DecoderEstimate(limits: ImageLimits()).bytes($0) > 720 << 20) }
    }

    @Test func aSizeOfZeroIsABadImage() {
        for (width, height) in [(0, 3), (3, 0), (0, 0)] {
            #expect(failure { _ = try facts(TestImages.qoi(width, height, [])) } == .badImage)
        }
    }

    @Test func theSignatureOfQOIIsRecognised() {
        let limits = HeaderInspector(limits: ImageLimits())
        for count in 1..<14 {
            let verdict = Self.file.prefix(count).withUnsafeBytes { limits.inspect($0) }
            if case .undecided = verdict { continue }
            Issue.record("\(count) bytes: \(verdict)")
        }
        let whole = Self.file.withUnsafeBytes { limits.inspect($0) }
        if case .acceptAs("qoi") = whole {} else { Issue.record("\(whole)") }
        let text = Array("qoif is how this text begins, and no more".utf8)
        #expect(failure { _ = try facts(text) } == .notAnImage)
    }

    /// A read out of bounds would trap.
    @Test func mutatedFilesNeverTrap() {
        var random = SeededGenerator(seed: 7)
        let limits = ImageLimits(pixels: 10_000)
        for _ in 0..<4_000 {
            var bytes = TestImages.qoi(7, 5)
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            bytes.removeLast(Int.random(in: 0...bytes.count, using: &random))
            bytes.withUnsafeBytes { bytes in
                _ = QOIFormat().endsEarly(ByteReader(bytes))
                for takesBeginning in [false, true] {
                    // Whether it fails is not the question.
                    _ = try? QOICoder(takesBeginning: takesBeginning).decode(bytes, limits: limits)
                }
            }
        }
    }
}
