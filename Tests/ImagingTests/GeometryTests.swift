import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

@Suite(.timeLimit(.minutes(15)))
struct GeometryTests {
    private static func place(_ source: PixelSize, _ spec: String) throws -> Placement {
        let spec = try VariantSpec.parse("v=\(spec)")
        return Placement(of: source, width: spec.width, height: spec.height, fit: spec.fit, enlarge: spec.enlarge)
    }

    @Test(arguments: [
        // SDWebImage's numbers.
        (100, 200, "150x150", "75x150", "75x150"), (100, 200, "300x300", "100x200", "100x200"),
        (100, 200, "300x300,enlarge", "150x300", "150x300"), (5250, 3450, "400x300", "400x263", "400x263"),
        // One side empty: proportionate, whatever the fit.
        (1600, 1200, "320x", "320x240", "320x240"), (1600, 1200, "x120,cover", "160x120", "160x120"),
        (100, 50, "200x", "100x50", "100x50"), (100, 50, "200x,fill,enlarge", "200x100", "200x100"),
        (1600, 1200, "300x300,outside", "400x300", "400x300"), (100, 50, "200x200,outside", "100x50", "100x50"),
        (100, 50, "200x200,outside,enlarge", "400x200", "400x200"),
        (1600, 1200, "300x300,cover", "400x300", "300x300"), (100, 50, "200x200,cover,enlarge", "400x200", "200x200"),
        // Too small in one axis: the box clipped to the source, as sharp's withoutEnlargement has it.
        (200, 400, "320x240,cover", "200x400", "200x240"), (100, 50, "200x200,cover", "100x50", "100x50"),
        (1600, 1200, "300x300,contain", "300x225", "300x300"), (100, 50, "300x300,contain", "100x50", "300x300"),
        (100, 50, "300x300,contain,enlarge", "300x150", "300x300"),
        (1600, 1200, "300x300,fill", "300x300", "300x300"), (200, 400, "300x300,fill", "200x300", "200x300"),
        (200, 400, "300x300,fill,enlarge", "300x300", "300x300"),
        (10_000, 1, "100x100", "100x1", "100x1"), (1, 10_000, "100x100,cover", "1x10000", "1x100"),
    ])
    func sizesOfPlacementsAreExact(width: Int, height: Int, spec: String, scaled: String, output: String) throws {
        let placement = try Self.place(PixelSize(width: width, height: height), spec)
        #expect("\(placement.scaled.width)x\(placement.scaled.height)" == scaled)
        #expect("\(placement.output.width)x\(placement.output.height)" == output)
    }

    @Test(arguments: VariantSpec.Fit.allCases, [false, true])
    func lawsOfPlacementsHoldForRandomSizes(fit: VariantSpec.Fit, enlarge: Bool) {
        var random = SystemRandomNumberGenerator()
        let side = { Int(1 << Int.random(in: 0...13, using: &random)) + Int.random(in: 0...99, using: &random) }
        for _ in 0..<3_000 {
            let source = PixelSize(width: side(), height: side())
            let box = PixelSize(width: side(), height: side())
            let it = Placement(of: source, width: box.width, height: box.height, fit: fit, enlarge: enlarge)
            #expect(min(it.scaled.width, it.scaled.height, it.output.width, it.output.height) >= 1)
            if !enlarge { #expect(it.scaled.width <= source.width && it.scaled.height <= source.height) }
            if fit != .outside { #expect(it.output.width <= box.width && it.output.height <= box.height) }
            if fit == .contain || (fit != .inside && fit != .outside && enlarge) { #expect(it.output == box) }
            if fit != .fill { #expect(keepsAspect(source, it.scaled), "\(source) \(box) \(it)") }
        }
    }

    /// Less than a pixel from the exact proportion in one axis, or at the least size there is.
    private func keepsAspect(_ source: PixelSize, _ scaled: PixelSize) -> Bool {
        let width = Double(scaled.height) * Double(source.width) / Double(source.height)
        let height = Double(scaled.width) * Double(source.height) / Double(source.width)
        return min(abs(width - Double(scaled.width)), abs(height - Double(scaled.height))) < 1
            || min(scaled.width, scaled.height) == 1
    }
}
