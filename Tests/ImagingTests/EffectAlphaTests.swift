import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

/// Effects on transparent and semitransparent pictures.
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
    func theEdgeOfARotatedPictureKeepsItsColour(alpha: UInt8, spec: String) throws {
        let picture = try raster(spec, of: Self.flat(alpha: alpha))
        #expect(picture.channels == 4)
        #expect(strangers(in: picture).isEmpty)
        #expect(isNear(picture[picture.width / 2, picture.height / 2], Self.colour + [Int(alpha)], within: 1))
        #expect(picture[0, 0][3] < Int(alpha))
        // There are soft edges to look at.
        let soft = (0..<picture.height).flatMap { y in (0..<picture.width).map { picture[$0, y][3] } }
        #expect(soft.count { $0 > 8 && $0 < Int(alpha) - 8 } > 20)
    }

    @Test func theBackgroundIsBlendedIntoTheEdgeOfARotatedPicture() throws {
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
    func aTransparentBorderIsTrimmedWhateverItsColour(inner: (UInt8, UInt8, UInt8)) throws {
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

    @Test func aTrimComparesAlphaAndColours() throws {
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

    @Test func aTrimWorksOnGreyWithAlpha() throws {
        let source = TestImages.png(60, 40, kind: .rgba) { x, y in
            (20..<40).contains(x) && (10..<30).contains(y) ? (255, 255, 255, 255) : (255, 255, 255, 0)
        }
        #expect(try raster("greyscale,trim", of: source).size == "20x20")
    }

    // MARK: - Tint

    /// B(below, above) as the W3C's Compositing and Blending Level 1 has it.
    private static func blended(_ mode: String, _ below: Double, _ above: Double) -> Double {
        switch mode {
        case "multiply": return below * above
        case "screen": return 1 - (1 - below) * (1 - above)
        case "overlay": return blended("hard-light", above, below)
        case "darken": return below < above ? below : above
        case "lighten": return below > above ? below : above
        case "colour-dodge":
            if below == 0 { return 0 }
            return above == 1 ? 1 : min(1, below / (1 - above))
        case "colour-burn":
            if below == 1 { return 1 }
            return above == 0 ? 0 : 1 - min(1, (1 - below) / above)
        case "hard-light": return above <= 0.5 ? 2 * below * above : 1 - 2 * (1 - below) * (1 - above)
        case "soft-light":
            if above <= 0.5 { return below - (1 - 2 * above) * below * (1 - below) }
            let curve = below <= 0.25 ? 16 * below * below * below - 12 * below * below + 4 * below : below.squareRoot()
            return below + (2 * above - 1) * (curve - below)
        case "difference": return below > above ? below - above : above - below
        case "exclusion": return below + above - 2 * below * above
        default: return above
        }
    }

    @Test(arguments: EffectKind.blendModes, [UInt8(255), 128, 1])
    func aTintOfATransparentPictureFollowsTheFormula(mode: String, alpha: UInt8) throws {
        let tints = ["#800000ff", "#ff880080", "#808080ff", "#ffffffff", "#000000ff", "#20c04040"]
        // The ends, the quarter where soft light changes its curve, and what lies between.
        let values: [UInt8] = [0, 1, 40, 63, 64, 100, 127, 128, 150, 200, 254, 255]
        let source = TestImages.png(values.count, 3, kind: .rgba) { x, _ in
            (values[x], values[(x + 3) % values.count], values[(x + 7) % values.count], alpha)
        }
        for tint in tints {
            let picture = try raster("tint:\(tint):\(mode)", of: source)
            let colour = try #require(Colour(tint))
            let (above, opacity) = ([colour.red, colour.green, colour.blue], Double(colour.alpha) / 255)
            for x in values.indices {
                let expected = [0, 3, 7].enumerated().map { channel, shift in
                    let below = Double(values[(x + shift) % values.count]) / 255
                    let mixed = Self.blended(mode, below, Double(above[channel]) / 255)
                    return Int((255 * ((1 - opacity) * below + opacity * mixed)).rounded())
                }
                #expect(isNear(picture[x, 1], expected + [Int(alpha)], within: 1), "\(tint) on \(values[x])")
            }
        }
    }

    @Test func aTintOfAnOpaquePictureFollowsTheFormula() throws {
        let source = TestImages.png(8, 8, pixel: TestImages.solid((100, 150, 200, 255)))
        #expect(isNear(try raster("tint:#808080:overlay", of: source)[3, 3], [100, 151, 200], within: 2))
        #expect(isNear(try raster("tint:#ff8800:multiply", of: source)[3, 3], [100, 80, 0], within: 1))
        let grey = try raster("greyscale,tint:#800000", of: source)
        #expect(grey[3, 3] == [128, 0, 0])
    }
}
