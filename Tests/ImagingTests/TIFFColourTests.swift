import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// TIFFs whose samples are not red, green and blue.
@Suite(.timeLimit(.minutes(15)))
struct TIFFColourTests {
    private typealias Tags = [(tag: Int, type: Int, values: [Int])]

    /// Eight by eight equal pixels.
    private static func picture(
        _ pixel: [UInt8], photometric: Int = 6, bits: Int = 8, tags: Tags = [], bigEndian: Bool = false,
    ) -> [UInt8] {
        TestImages.tiff(
            8, 8, samples: Array(repeatElement(pixel, count: 64).joined()), channels: pixel.count * 8 / bits,
            bits: bits, photometric: photometric, bigEndian: bigEndian, tags: tags)
    }

    private static let whole: Tags = [(530, 3, [1, 1])]

    private func pixel(_ source: [UInt8], _ spec: String = "8x,png") throws -> [Int] {
        try Raster(make(one: source, spec))[1, 1]
    }

    @Test(
        arguments: [
            ([76, 85, 255], [254, 0, 0]), ([0, 128, 128], [0, 0, 0]), ([255, 128, 128], [255, 255, 255]),
            ([124, 75, 182], [200, 104, 30]), ([29, 255, 107], [0, 0, 254]),
        ] as [([UInt8], [Int])], [false, true])
    func yCbCrIsConverted(stored: (pixel: [UInt8], expected: [Int]), bigEndian: Bool) throws {
        let source = Self.picture(stored.pixel, tags: Self.whole, bigEndian: bigEndian)
        for spec in ["8x,png", "4x,png", "16x,png", "8x,png,keep-metadata", "8x,png,keep-profile"] {
            let seen = try pixel(source, spec)
            #expect(isNear(seen, stored.expected, within: 1), "\(spec): \(seen)")
        }
        #expect(try !facts(source).hasAlpha)
    }

    @Test(arguments: [false, true]) func yCbCrOfSixteenBitsIsConverted(bigEndian: Bool) throws {
        let numbers = [19_532, 32_768, 58_368]
        let bytes = numbers.flatMap { bigEndian ? TestImages.big($0, 2) : TestImages.little($0, 2) }
        let source = Self.picture(bytes, bits: 16, tags: Self.whole, bigEndian: bigEndian)
        #expect(isNear(try pixel(source), [216, 5, 76], within: 1))
    }

    /// libtiff delivers the planes in another order than that of the file.
    @Test func yCbCrInPlanesIsRefused() {
        let samples = [76, 85, 255].flatMap { [UInt8](repeating: $0, count: 64) }
        let tags: Tags = [(273, 4, [8, 72, 136]), (279, 4, [64, 64, 64]), (284, 3, [2])]
        let source = TestImages.tiff(8, 8, samples: samples, channels: 3, photometric: 6, tags: Self.whole + tags)
        #expect(failure { _ = try make(source, "a=8x,png") } == .badImage)
        let alpha = Self.picture([76, 85, 255, 128], tags: Self.whole + [(338, 3, [2])])
        #expect(failure { _ = try make(alpha, "a=8x,png") } == .badImage)
    }

    @Test func theCoefficientsAndLevelsOfTheFileAreUsed() throws {
        let modern: Tags = [(529, 5, [2_126, 10_000, 7_152, 10_000, 722, 10_000])]
        #expect(isNear(try pixel(Self.picture([76, 128, 228], tags: Self.whole + modern)), [233, 29, 76], within: 1))
        let levels: Tags = [(532, 5, [16, 1, 235, 1, 128, 1, 240, 1, 128, 1, 240, 1])]
        #expect(
            isNear(try pixel(Self.picture([126, 128, 128], tags: Self.whole + levels)), [128, 128, 128], within: 1))
        #expect(isNear(try pixel(Self.picture([16, 128, 240], tags: Self.whole + levels)), [178, 0, 0], within: 1))
    }

    @Test(
        arguments: [
            (529, 5, [0, 1, 1, 2, 1, 2]), (529, 5, [1, 3, 1, 3]), (529, 5, [1, 0, 1, 3, 1, 3]),
            (532, 5, [0, 1, 0, 1, 128, 1, 255, 1, 128, 1, 255, 1]), (532, 3, [0, 255, 128, 255]),
            // Halved differences, said or not.
            (530, 3, [2, 2]), (530, 3, [2, 1]), (530, 3, []), (339, 3, [2, 2, 2]),
        ])
    func contradictoryTagsAreRefused(tag: Int, type: Int, values: [Int]) {
        let source = Self.picture([76, 85, 255], tags: Self.whole + [(tag, type, values)])
        #expect(failure { _ = try make(source, "a=8x,png") } == .badImage)
    }

    @Test(arguments: [4, 7, 9, 10, 32_803, 32_844, 32_845, 34_892, 51_177])
    func otherColourSpacesAreRefused(photometric: Int) {
        for pixel in [[100], [100, 40, 10], [100, 40, 10, 200]] as [[UInt8]] {
            let source = Self.picture(pixel, photometric: photometric)
            for specs in ["", "a=8x,png", "a=x,tiff"] {
                #expect(failure { _ = try make(source, specs) } == .badImage, "'\(specs)', \(pixel.count)")
            }
        }
    }

    @Test func separatedColoursOtherThanCMYKAreRefused() throws {
        let cmyk = Self.picture([0, 255, 255, 0], photometric: 5)
        #expect(try pixel(cmyk)[0] > 150)
        let refused = [
            Self.picture([0, 255, 255, 0], photometric: 5, tags: [(332, 3, [2])]),
            Self.picture([0, 255, 255], photometric: 5), Self.picture([200], photometric: 5),
        ]
        for source in refused { #expect(failure { _ = try make(source, "a=8x,png") } == .badImage) }
    }

    @Test func theFailureOfAColourSpaceHasTheReason() throws {
        do {
            _ = try make(Self.picture([100], photometric: 32_803), "")
            Issue.record("It passed.")
        } catch let error as Failure {
            #expect(error.message == "The tiff's colours are a sensor's mosaic, which can't be read.")
        }
    }
}
