import Testing

@testable import ImageFiles
@testable import Imaging

/// The algorithms alone, compared with other programs.
@Suite(.timeLimit(.minutes(15))) struct PlaceholderVectorTests {
    /// A pattern without symmetries, so that no channel, axis or sign can be mistaken for another.
    private static func pattern(_ width: Int, _ height: Int, hasAlpha: Bool = false) -> Miniature {
        var bytes: [UInt8] = []
        for y in 0..<height {
            for x in 0..<width {
                let alpha = hasAlpha ? x * 29 + y * 13 : 255
                bytes += [x * 37 + y * 11, x * 5 + y * y, x * y * 3, alpha].map { UInt8($0 & 255) }
            }
        }
        return Miniature(width: width, height: height, bytes: bytes)
    }

    /// Red to the right and green downwards.
    private static let gradient: Miniature = {
        var bytes: [UInt8] = []
        for y in 0..<48 {
            for x in 0..<64 { bytes += [UInt8(255 * x / 63), UInt8(255 * y / 47), 128, 255] }
        }
        return Miniature(width: 64, height: 48, bytes: bytes)
    }()

    /// Made with `encode(rows, columns, rows)` of Python's `blurhash` 1.1.5.
    @Test(arguments: [
        (32, 24, 4, 3, "LGHU%-vMj,xSq]U{SJR+L%ixO;nn"), (7, 5, 3, 2, "BhHG-+1]JR,DJmsU"), (16, 16, 1, 1, "00G[D~"),
        (1, 1, 4, 3, "L00000fQfQfQfQfQfQfQfQfQfQfQ"),
    ])
    func blurHashesEqualTheReferences(width: Int, height: Int, columns: Int, rows: Int, text: String) {
        #expect(BlurHash(of: Self.pattern(width, height), columns: columns, rows: rows).text == text)
    }

    /// Made with `encode.rgba_to_thumbhash(width, height, rgba)` of Python's `thumbhash-python` 1.0.1.
    @Test(arguments: [
        (32, 24, false, "XggGFYZRZWYydndQhzeIpvtu+cju"), (20, 50, true, "XhiCCgIHE3AIJCe/qPq1u1gJd3eFdTc="),
        (1, 1, false, "AAgCBwAAAAAAAAAAAAAAAAAAAAAAAAAA"), (100, 100, false, "H/gBBwBSADdURpRWRkN1NFRXw/u3f9cG"),
        (9, 9, true, "EqmGFQgnB7mhuJdneA8uqZBnA2o3ineJhw=="),
    ])
    func thumbHashesEqualTheReferences(width: Int, height: Int, hasAlpha: Bool, text: String) {
        #expect(ThumbHash(of: Self.pattern(width, height, hasAlpha: hasAlpha)).base64 == text)
    }

    /// Made by the same programs. (Most of this ThumbHash lies between two steps, where the last bit of a sum decides.)
    @Test func hashesOfAGradientEqualTheReferences() {
        #expect(BlurHash(of: Self.gradient, columns: 4, rows: 3).text == "L$HVCg2Y$5Sgl|azjtf7gcfjfQfj")
        #expect(ThumbHash(of: Self.gradient).base64.hasPrefix("3wcKPZqA"))
    }

    @Test func halfOfTheBitsOfAPerceptualHashAreSet() throws {
        let hash = try #require(PerceptualHash(of: Self.pattern(32, 32)))
        #expect(hash.bits.nonzeroBitCount == 32)
        #expect(UInt64(bitPattern: hash.signed) == hash.bits)
    }

    @Test func theDominantColourIsTheMeanOfTheFullestCell() throws {
        let bytes: [UInt8] = [10, 10, 10, 255, 20, 20, 20, 255, 250, 0, 0, 255, 0, 250, 0, 255]
        #expect(DominantColour(of: Miniature(width: 2, height: 2, bytes: bytes))?.hex == "#0f0f0f")
    }

    @Test func pixelsOfTheDominantColourAreWeightedByAlpha() throws {
        let bytes: [UInt8] = [255, 0, 0, 90, 255, 0, 0, 90, 0, 0, 255, 255]
        #expect(DominantColour(of: Miniature(width: 3, height: 1, bytes: bytes))?.hex == "#0000ff")
        #expect(DominantColour(of: Miniature(width: 1, height: 1, bytes: [255, 0, 0, 0])) == nil)
    }

    @Test func samplesAreMeansWeightedByAlpha() {
        let pixels: [UInt8] = [200, 100, 0, 255, 0, 0, 0, 0]
        let mean = pixels.withUnsafeBytes {
            Miniature(sampling: $0, of: PixelSize(width: 2, height: 1), channels: 4, width: 1, height: 1)
        }
        #expect(mean.bytes == [200, 100, 0, 128])
        #expect(mean.onWhite.bytes == [227, 177, 127, 255])
    }
}
