import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

private struct Change: ImageTransform {
    var name = "change"
    var version = "1"
    let body: @Sendable (RGBAImage, String) throws -> RGBAImage?

    struct No: Error, CustomStringConvertible { let description: String }

    func transform(_ image: RGBAImage, argument: String) throws -> RGBAImage {
        guard let result = try body(image, argument) else { throw No(description: "not \(argument)") }
        return result
    }
}

@Suite(.timeLimit(.minutes(15)))
struct DelegateTests {
    private static let red = TestImages.png(40, 30, pixel: TestImages.solid((200, 10, 10, 255)))

    private static func made(_ spec: String, _ transforms: [any ImageTransform]) throws -> Made {
        try make(red, "v=\(spec)", extensions: ImagingExtensions(transforms: transforms))
    }

    @Test func aTransformGetsThePixelsAfterTheEffectsBeforeIt() throws {
        let sizes = Change { image, argument in
            #expect(argument == "a1" && image.width == 20 && image.height == 15)
            #expect(Array(image.pixels.prefix(4)) == [55, 245, 245, 255])
            return RGBAImage(width: 20, height: 15, pixels: [UInt8](repeating: 255, count: 1_200))
        }
        let made = try Self.made("20x,png,invert,delegate:change:a1,invert", [sizes])
        #expect(try Raster(made.files[0])[3, 3] == [0, 0, 0])
    }

    @Test func aResultMayHaveAnotherSizeAndAnAlpha() throws {
        let change = Change { _, _ in RGBAImage(width: 3, height: 2, pixels: [UInt8](repeating: 9, count: 24)) }
        let made = try Self.made("20x,png,delegate:change", [change])
        #expect(made.report.renditions.first?.width == 3)
        #expect(try Raster(made.files[0])[0, 0] == [9, 9, 9, 9])
    }

    @Test func aFailingTransformIsOfClassDelegateAndSaysWhy() throws {
        let refusal = Change { _, _ in nil }
        for (spec, words) in [
            ("20x,delegate:change:mondays", "The transform 'change' failed: not mondays"),
            ("20x,delegate:other", "There is no transform named 'other'"),
        ] {
            let error = #expect(throws: Failure.self) { try Self.made(spec, [refusal]) }
            #expect(error?.failureClass == .delegate && error?.message.contains(words) == true)
        }
    }

    @Test func aResultBeyondTheLimitIsRefused() {
        let grow = Change { _, _ in RGBAImage(width: 200, height: 200, pixels: [UInt8](repeating: 9, count: 160_000)) }
        #expect(
            failure {
                _ = try make(
                    Self.red, "v=20x,delegate:change", limits: ImageLimits(pixels: 10_000),
                    extensions: ImagingExtensions(transforms: [grow]))
            } == .transform)
    }

    @Test func anImageHasFourBytesForEachPixel() {
        #expect(RGBAImage(width: 2, height: 2, pixels: [UInt8](repeating: 0, count: 15)) == nil)
        #expect(RGBAImage(width: 0, height: 2, pixels: []) == nil)
        #expect(RGBAImage(width: .max, height: .max, pixels: []) == nil)
    }

    @Test(arguments: ["command:/bin/sh", "command:../x", "delegate:", "command:a b", "command", "delegate:é"])
    func onlyAPlainNameIsAcceptedForATransform(effect: String) {
        #expect(throws: VariantSpecError.self) { try VariantSpec.parse("v=20x,\(effect)") }
    }

    @Test func anArgumentIsNotReadAsAnotherEffect() throws {
        let one = try VariantSpec.parseList(
            #"{"name":"v","width":5,"ops":[{"delegate":{"name":"a","argument":"x),invert("}}]}"#)
        let two = try VariantSpec.parse("v=5x,delegate:a:x,invert")
        #expect(one.first?.canonical != two.canonical)
    }

    // MARK: - Commands

    private static func stages(_ text: String, of format: ImageFormat = .jpeg) throws -> [String] {
        let staged = try #require(StagedVariant(try VariantSpec.parse("v=\(text)")))
        let facts = ImageFacts(formatName: format.rawValue, width: 90, height: 90, frames: 1, hasAlpha: false)
        let rest = try staged.commands.indices.map { try staged.spec(after: $0, of: facts).canonical }
        return [try staged.first().canonical] + rest
    }

    @Test func aVariantIsSplitIntoStagesAtItsCommands() throws {
        #expect(StagedVariant(try VariantSpec.parse("v=20x,invert")) == nil)
        #expect(
            try Self.stages("20x30,cover,webp,q70,invert,command:a,blur:2,command:b:x,greyscale") == [
                try VariantSpec.parse("v=20x30,cover,png,decode-first-frame-only,invert").canonical,
                "x,inside,png,blur(sigma=2),resize()".swapped, "x,inside,webp,q70,greyscale()".swapped,
            ])
    }

    @Test func theBoxMayComeAfterACommand() throws {
        let stages = try Self.stages("20x30,cover,command:a,resize")
        #expect(stages[0].hasPrefix("x,") && stages[1].hasPrefix("20x30,cover,jpeg,resize()"))
    }

    @Test func theSourcesFormatIsKeptAcrossACommand() throws {
        #expect(try Self.stages("20x,q50,command:a", of: .webp)[1].contains("webp,q50"))
        #expect(try Self.stages("20x,q50,command:a", of: .png)[1].contains(",png"))
    }
}

extension String {
    /// An empty box stands where the list of effects begins.
    fileprivate var swapped: String {
        var parts = split(separator: ",").map(String.init).filter { $0 != "resize()" }
        let place = parts.firstIndex { $0.hasSuffix(")") } ?? parts.count
        parts.insert("resize()", at: place)
        return parts.joined(separator: ",")
    }
}
