import TestSupport
import Testing

@testable import Imaging

/// Effects on pictures that are transparent, wholly or by half.
@Suite(.timeLimit(.minutes(15)))
struct EffectAlphaTests {
    private static let colour = [100, 150, 200]

    private static func flat(alpha: UInt8, _ width: Int = 40, _ height: Int = 30) -> [UInt8] {
        TestImages.png(width, height, kind: .rgba, pixel: TestImages.solid((100, 150, 200, alpha)))
    }

    private func raster(_ spec: String, of source: [UInt8]) throws -> Raster {
        try Raster(make(one: source, "x,png,\(spec)"))
    }

    /// Pixels that can be seen and are of another colour.
    private func strangers(in picture: Raster, within tolerance: Int = 2) -> [[Int]] {
        (0..<picture.height).flatMap { y in (0..<picture.width).map { x in picture[x, y] } }.filter {
            $0[3] > 8 && !isNear(Array($0.prefix(3)), Self.colour, within: tolerance)
        }
    }

    @Test(arguments: [UInt8(255), 128, 40], ["rotate:10", "rotate:45", "rotate:-73.5", "rotate:10:clip"])
    func aTurnedEdgeKeepsItsColour(alpha: UInt8, spec: String) throws {
        let picture = try raster(spec, of: Self.flat(alpha: alpha))
        #expect(picture.channels == 4)
        #expect(strangers(in: picture).isEmpty)
        #expect(isNear(picture[picture.width / 2, picture.height / 2], Self.colour + [Int(alpha)], within: 1))
        #expect(picture[0, 0][3] < Int(alpha))
        // There are soft edges to look at.
        let soft = (0..<picture.height).flatMap { y in (0..<picture.width).map { picture[$0, y][3] } }
        #expect(soft.count { $0 > 8 && $0 < Int(alpha) - 8 } > 20)
    }

    @Test func aTurnedPicturesBackgroundIsMixedIn() throws {
        let picture = try raster("rotate:30:background=#6496c880", of: Self.flat(alpha: 255))
        #expect(strangers(in: picture).isEmpty)
        #expect(isNear(picture[0, 0], Self.colour + [128], within: 1))
        let opaque = try raster("rotate:30:background=#6496c8", of: Self.flat(alpha: 255))
        #expect(strangers(in: opaque).isEmpty)
    }

    @Test func aBlurredEdgeKeepsItsColour() throws {
        let square = TestImages.png(40, 40, kind: .rgba) { x, y in
            (12..<28).contains(x) && (12..<28).contains(y) ? (100, 150, 200, 255) : (0, 0, 0, 0)
        }
        #expect(strangers(in: try raster("blur:3", of: square)).isEmpty)
    }

    // MARK: - Trim

    @Test(arguments: [(255, 255, 255), (0, 0, 0), (0, 0, 255)] as [(UInt8, UInt8, UInt8)])
    func aTransparentBorderIsTrimmedOffAnyColour(inner: (UInt8, UInt8, UInt8)) throws {
        for outer: UInt8 in [0, 255] {
            let source = TestImages.png(60, 40, kind: .rgba) { x, y in
                (20..<40).contains(x) && (10..<30).contains(y)
                    ? (inner.0, inner.1, inner.2, 255) : (outer, outer, outer, 0)
            }
            let picture = try raster("trim", of: source)
            #expect(picture.size == "20x20")
            #expect(picture[0, 0].prefix(3) == [inner.0, inner.1, inner.2].map(Int.init)[...])
        }
    }

    @Test func aTrimSeesAlphaAndColoursTogether() throws {
        // On the left other colours, on the right another alpha.
        let source = TestImages.png(60, 40, kind: .rgba) { x, y in
            guard (10..<30).contains(y) else { return (200, 200, 200, 128) }
            return (10..<20).contains(x)
                ? (0, 0, 0, 128) : (40..<50).contains(x) ? (200, 200, 200, 255) : (200, 200, 200, 128)
        }
        #expect(try raster("trim", of: source).size == "40x20")
        let nothing = TestImages.png(20, 10, kind: .rgba) { x, _ in (UInt8(x * 10), 0, 0, 0) }
        #expect(try raster("trim", of: nothing).size == "20x10")
    }

    @Test func aTrimKnowsGreyWithAlpha() throws {
        let source = TestImages.png(60, 40, kind: .rgba) { x, y in
            (20..<40).contains(x) && (10..<30).contains(y) ? (255, 255, 255, 255) : (255, 255, 255, 0)
        }
        #expect(try raster("greyscale,trim", of: source).size == "20x20")
    }
}
