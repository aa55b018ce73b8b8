import Core
import Foundation
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Samples other than 8-bit sRGB, such as floats and wide integers.
@Suite(.timeLimit(.minutes(15)))
struct SampleTests {
    /// A picture of eight by eight equal pixels.
    private func picture(
        _ pixel: [UInt8], channels: Int, bits: Int, format: Int, photometric: Int, profile: [UInt8] = [],
    ) -> [UInt8] {
        TestImages.tiff(
            8, 8, samples: Array(repeatElement(pixel, count: 64).joined()), channels: channels, bits: bits,
            format: format, photometric: photometric, profile: profile)
    }

    private static func bytes<Number>(_ numbers: [Number]) -> [UInt8] { numbers.withUnsafeBytes { Array($0) } }

    private func fractions(_ values: [Float], photometric: Int, profile: [UInt8] = []) -> [UInt8] {
        picture(
            Self.bytes(values), channels: values.count, bits: 32, format: 3, photometric: photometric, profile: profile)
    }

    private func pixel(_ source: [UInt8], _ spec: String = "8x,png") throws -> [Int] {
        try Raster(make(one: source, spec))[1, 1]
    }

    @Test(
        arguments: [
            ([0.5], 1, [128]), ([0], 1, [0]), ([1], 1, [255]), ([128], 1, [128]),
            // Light: sRGB's curve from light to what is stored.
            ([0.215861, 0.05, 0.6], 2, [128, 63, 203]), ([0, 1, 4], 2, [0, 255, 255]),
            ([128, 64, 200], 2, [128, 64, 200]),
            ([0.215861, 0.05, 0.6, 0.5], 2, [128, 63, 203, 128]), ([0.25, 0.5], 1, [64, 128]),
        ] as [([Float], Int, [Int])])
    func floatSamplesAreReadAsColours(values: [Float], photometric: Int, expected: [Int]) throws {
        let source = fractions(values, photometric: photometric)
        #expect(isNear(try pixel(source), expected, within: 1))
        #expect(isNear(try pixel(source, "4x,png,sharpen"), expected, within: 1))
        #expect(try facts(source).hasAlpha == [2, 4].contains(values.count))
    }

    /// Samples brighter than white become white and do not darken their neighbours.
    @Test func highlightsAreClipped() throws {
        let samples = (0..<64).flatMap { Array(repeating: Float($0 % 8 < 6 ? 0.05 : 3), count: 3) }
        let source = TestImages.tiff(
            8, 8, samples: Self.bytes(samples), channels: 3, bits: 32, format: 3, photometric: 2)
        let raster = try Raster(make(one: source, "8x,png"))
        #expect(isNear(raster[1, 1], [63, 63, 63], within: 1) && isNear(raster[7, 1], [255, 255, 255], within: 0))
    }

    @Test func floatSamplesAreConvertedByTheirProfile() throws {
        let profile = TestImages.profile(
            primaries: [[0.4361, 0.2225, 0.0139], [0.3851, 0.7169, 0.0971], [0.1431, 0.0606, 0.7141]],
            curve: { $0 * $0 })
        let source = fractions([0.5, 0.25, 1], photometric: 2, profile: profile)
        // A quarter of the light is 137 in sRGB, and a sixteenth 71.
        #expect(isNear(try pixel(source), [137, 71, 255], within: 2))
        // With their profile they stay as they are.
        let kept = try make(one: source, "8x,png,keep-profile")
        #expect(kept.contains(Array("iCCP".utf8)))
    }

    @Test func wideIntegerSamplesAreScaled() throws {
        let wide = picture(Self.bytes([UInt32.max / 4 * 3]), channels: 1, bits: 32, format: 1, photometric: 1)
        #expect(isNear(try pixel(wide), [191], within: 1))
        let colours: [UInt16] = [65_535, 32_768, 0]
        let deep = picture(Self.bytes(colours), channels: 3, bits: 16, format: 1, photometric: 2)
        #expect(isNear(try pixel(deep), [255, 128, 0], within: 1))
    }

    @Test func samplesThatAreNoColoursAreRefused() {
        let heights = picture(Self.bytes([Int16(-120)]), channels: 1, bits: 16, format: 2, photometric: 1)
        let waves = picture(Self.bytes([Float(1), 2]), channels: 1, bits: 64, format: 6, photometric: 1)
        for source in [heights, waves] {
            #expect(failure { _ = try make(one: source, "8x,png") } == .badImage)
            #expect(failure { _ = try facts(source) } == .badImage)
        }
    }

    /// Half of the lightness, a little red: CIELAB counts from white of D50 to black, so the numbers are those of tables.
    @Test(arguments: [[], Array("Lab profile of no use".utf8)])
    func cielabIsConverted(profile: [UInt8]) throws {
        let source = picture([128, 40, 0], channels: 3, bits: 8, format: 1, photometric: 8, profile: profile)
        #expect(isNear(try pixel(source), [180, 91, 119], within: 6))
        #expect(isNear(try pixel(source, "4x,png"), [180, 91, 119], within: 6))
        #expect(try !facts(source).hasAlpha)
        let kept = try make(one: source, "8x,png,keep-profile")
        #expect(!kept.contains(Array("iCCP".utf8)))
        #expect(isNear(try Raster(kept)[1, 1], [180, 91, 119], within: 6))
    }

    @Test func floatSamplesOfJPEGXLAreReadAsColours() throws {
        let colours = try #require(
            Data(
                base64Encoded:
                    "/wpByCUULQIAEogA2AAHoSgBAFChMsq4wcu5ni8/dFhM27jO0FbbFpYkioxjk3QChySxCmxcgGEYYAxmbi9ODASrkgQ="))
        #expect(isNear(try pixel([UInt8](colours)), [128, 63, 203], within: 2))
        #expect(isNear(try pixel([UInt8](colours), "8x,png,keep-profile"), [128, 63, 203], within: 2))
        #expect(isNear(try pixel([UInt8](colours), "4x,png"), [128, 63, 203], within: 2))
    }

    @Test func effectsRoundTheirCurves() throws {
        let ramp = TestImages.png(256, 1, kind: .grey) { x, _ in (UInt8(x), UInt8(x), UInt8(x), 255) }
        for (effect, law) in [
            ("gamma:2", { 255 * ($0 / 255).squareRoot() }), ("gamma:0.5", { $0 * $0 / 255 }),
            ("brightness:0.7", { 0.7 * $0 }), ("contrast:0.5", { 64 + 0.5 * $0 }),
        ] as [(String, (Double) -> Double)] {
            let raster = try Raster(make(one: ramp, "256x,png,\(effect)"))
            for x in 0..<256 {
                // Half a step may fall to either side.
                let distance = abs(Double(raster[x, 0][0]) - law(Double(x)))
                #expect(distance < 0.5001, "\(effect) of \(x)")
            }
        }
    }
}

/// libvips delivers the last frame of an animated JPEG XL, and a still is made of the first.
@Suite(.timeLimit(.minutes(15)))
struct AnimatedJXLTests {
    /// Red, green and blue, 16×12 pixels each, as cjxl writes them.
    private static let flags = [UInt8](
        Data(
            base64Encoded:
                "/wpYMEEAFhSXBAgIoAIAAGgASxiLFQDUijEYpwtIANBK0QDASODfD0uD9gcICKACAABcAEsYixUAHBhjcPAuIAFA4T6P"
                + "iz9AUb85CAigQgAARABLGIsVgF3W/wISAEiQ1J34Aw==") ?? Data())

    @Test func aStillOfAnAnimatedJPEGXLIsItsFirstFrame() throws {
        #expect(try facts(Self.flags).frames == 3)
        let made = try make(
            Self.flags,
            "a=x,png,decode-first-frame-only b=8x6,webp,lossless,decode-first-frame-only c=8x,jpeg,keep-profile")
        for file in made.files { #expect(isNear(Array(try Raster(file)[2, 2].prefix(3)), [255, 0, 0], within: 12)) }
        let placeholders = try #require(try make(Self.flags, "").report.facts.placeholders)
        #expect(placeholders.dominantColour == "#ff0000")
    }

    @Test func aCutAnimatedJPEGXLIsTruncated() throws {
        for end in 0..<Self.flags.count {
            let code = failure { _ = try make(Array(Self.flags.prefix(end)), "a=8x,png") }
            #expect(code == (end == 0 ? .badImage : .truncated), "\(end)")
        }
        var damaged = Self.flags
        for place in 20..<28 { damaged[place] ^= 0xFF }
        #expect(failure { _ = try make(damaged, "a=8x,png") } == .badImage)
        // A still of more frames than may be decoded is made of the first; an animation is refused.
        #expect(failure { _ = try make(Self.flags, "a=8x,jpeg", limits: ImageLimits(frames: 2)) } == nil)
        #expect(failure { _ = try make(Self.flags, "a=8x,png", limits: ImageLimits(frames: 2)) } == .tooManyPixels)
    }
}
