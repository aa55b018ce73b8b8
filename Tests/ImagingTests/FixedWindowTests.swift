import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

/// The cropped part of an animation is found once for all frames.
@Suite(.timeLimit(.minutes(15)))
struct FixedWindowTests {
    /// A red square on the right that is on the left a frame later, before a ground whose blue tells the column.
    private static func film() throws -> [UInt8] {
        try AnimationMetadataTests.film(64, 16) { x, y, number in
            let isSquare = (number == 0 ? 46..<54 : 6..<14).contains(x) && (4..<12).contains(y)
            return isSquare ? Pixel(red: 255, green: 30, blue: 20) : Pixel(red: 20, green: 20, blue: UInt8(30 + x))
        }
    }

    @Test(arguments: ["attention", "entropy"], ["", ",flip,transform-animated-image"])
    func theFirstFrameDecidesTheCrop(position: String, effects: String) throws {
        let made = try Film(make(one: Self.film(), "16x16,cover,\(position),webp,lossless\(effects)"))
        #expect(made.size == PixelSize(width: 16, height: 16) && made.frames.count == 2)
        // Its left edge, and whether there is a square.
        let columns = made.frames.map { $0[2] }
        let squares = made.frames.map { frame in
            stride(from: 0, to: frame.count, by: 4).contains { frame[$0] == 255 }
        }
        #expect(squares == [true, false])
        #expect(columns[0] == columns[1])
    }

    @Test(arguments: [(63, 16), (64, 17), (1_001, 333), (7, 7)]) func aFocusPointGivesTheSameWindow(
        whole: Int, part: Int
    )
        throws
    {
        try ImagingRuntime.start()
        let size = PixelSize(width: whole, height: 8)
        let placement = Placement(scaled: size, output: PixelSize(width: part, height: 8))
        for spot in stride(from: 0, to: whole, by: 3) {
            var pixels = [UInt8](repeating: 90, count: size.pixels * 4)
            for row in 2..<6 { pixels[(row * whole + spot) * 4] = 255 }
            let picture = try Picture(rgba: pixels, size)
            let position = try Position.attention.fixed(on: picture, placement)
            let found = try picture.cropped(to: placement, at: .attention)
            let again = try picture.cropped(to: placement, at: position)
            #expect(try found.withPixels { Array($0) } == again.withPixels { Array($0) }, "\(spot)")
            if whole > part { #expect(position != .attention) }
        }
    }
}
