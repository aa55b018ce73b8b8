import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Damage that the container doesn't show, and that decoders fill without a warning.
@Suite(.timeLimit(.minutes(15)))
struct HiddenDamageTests {
    /// Every block is there and the trailer too, but the codes of the first frame that begins behind `place` end early.
    private static func shortOfCodes(_ gif: [UInt8], keeping part: Double, after place: Int? = nil) throws -> [UInt8] {
        let start = try #require(firstBlock(of: gif, after: place))
        var blocks: [[UInt8]] = []
        var offset = start
        while gif[offset] > 0 {
            blocks.append(Array(gif[(offset + 1)...(offset + Int(gif[offset]))]))
            offset += 1 + Int(gif[offset])
        }
        let codes = blocks.flatMap { $0 }
        var rest = codes.prefix(Int(Double(codes.count) * part))
        var data: [UInt8] = []
        while !rest.isEmpty {
            let block = rest.prefix(255)
            data += [UInt8(block.count)] + block
            rest = rest.dropFirst(255)
        }
        return Array(gif[..<start]) + data + Array(gif[offset...])
    }

    /// Where the data of an image begin, behind the size of its codes.
    private static func firstBlock(of gif: [UInt8], after place: Int?) -> Int? {
        func table(_ flags: UInt8) -> Int { flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1) }
        var offset = place ?? 13 + table(gif[10])
        while offset < gif.count {
            if gif[offset] == 0x2C { return offset + 11 + table(gif[offset + 9]) }
            offset += 2
            while gif[offset] > 0 { offset += 1 + Int(gif[offset]) }
            offset += 1
        }
        return nil
    }

    @Test(arguments: [0.0, 0.3, 0.7, 0.97]) func aGIFWhoseCodesEndEarlyIsABadImage(part: Double) throws {
        var still = TestGIF(width: 160, height: 120)
        still.frames = [TestGIF.Frame(160, 120, seed: 1)]
        var moving = TestGIF(width: 160, height: 120)
        moving.frames = (0..<3).map { TestGIF.Frame(160, 120, seed: $0) }
        for whole in [still.bytes, moving.bytes] {
            let damaged = try Self.shortOfCodes(whole, keeping: part)
            for specs in ["", "a=40x30,webp", "a=x,png", "a=x,gif", "a=20x,jpeg b=30x,webp,decode-first-frame-only"] {
                #expect(failure { _ = try make(whole, specs) } == nil)
                #expect(failure { _ = try make(damaged, specs) } == .badImage, "'\(specs)'")
            }
        }
    }

    @Test func damageInALaterFrameIsABadImage() throws {
        var moving = TestGIF(width: 160, height: 120)
        moving.frames = (0..<4).map { TestGIF.Frame(160, 120, seed: $0) }
        let damaged = try Self.shortOfCodes(moving.bytes, keeping: 0.5, after: moving.ends[1])
        for specs in ["", "a=40x,jpeg", "a=x,gif", "a=20x,png b=20x,png,decode-first-frame-only"] {
            #expect(failure { _ = try make(moving.bytes, specs) } == nil)
            #expect(failure { _ = try make(damaged, specs) } == .badImage, "'\(specs)'")
        }
        #expect(
            failure { _ = try make(damaged, "a=20x,jpeg", tolerance: DecodeTolerance(firstFrameSuffices: true)) } == nil
        )
        #expect(
            failure { _ = try make(damaged, "a=20x,gif", tolerance: DecodeTolerance(firstFrameSuffices: true)) }
                == .badImage)
        // Who may not decode so many frames has the first.
        let few = ImageLimits(frames: 3)
        #expect(failure { _ = try make(moving.bytes, "a=20x,jpeg", limits: few) } == nil)
        #expect(failure { _ = try make(moving.bytes, "a=20x,webp", limits: few) } == .tooManyPixels)
    }

    /// The format is chosen at the same quality, before the quality is lowered for max-bytes.
    @Test func autoWithMaxBytesKeepsTheFormatThatAutoChooses() throws {
        let scene = Scene.png(3)
        let best = try make(scene, "a=300x,auto:jpeg+webp").report.renditions[0]
        let most = try make(one: scene, "300x,auto:jpeg+webp").count * 2 / 3
        let pressed = try make(scene, "a=300x,auto:jpeg+webp,max-bytes:\(most)")
        #expect(pressed.report.renditions[0].formatName == best.formatName)
        #expect(pressed.files[0].count <= most)
    }
}
