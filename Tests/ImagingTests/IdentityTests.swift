import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

/// Equivalent variants have one identity, and different variants have different ones. See ``CanonicalTests`` for
/// single formats.
@Suite(.timeLimit(.minutes(15)))
struct IdentityTests {
    @Test(arguments: [
        // Each format's own default.
        ("a=5x,auto:webp+jpeg,q80", "a=5x,auto:webp+jpeg"), ("a=5x,auto:png+webp,q80", "a=5x,auto:png+webp"),
        ("a=5x,auto:png+tiff,q50", "a=5x,auto:png+tiff"), ("a=5x,auto:avif+png,q55", "a=5x,auto:avif+png"),
        ("a=5x,auto:jxl+png,q2", "a=5x,auto:jxl+png,q5"),
        // No quality of what is lossless.
        ("a=5x,auto:webp+avif,lossless,q50", "a=5x,auto:webp+avif,lossless"),
        ("a=5x,auto:webp+avif+png,lossless,q50", "a=5x,auto:webp+avif+png,lossless"),
        ("a=5x,auto:jpeg+webp,lossless,q50", "a=5x,webp,lossless"),
        ("a=5x,auto,lossless", "a=5x,auto:webp+avif+png,lossless"),
        ("a=5x,auto:webp+png,near-lossless:20,q9", "a=5x,auto:webp+png,near-lossless:20"),
        // What has an alpha has nothing behind it.
        ("a=50x50,contain,auto:webp+avif,background:#ff0000", "a=50x50,contain,auto:webp+avif"),
        ("a=50x50,contain,auto:webp+png,background:#ff0000", "a=50x50,contain,auto:webp+png"),
        // Pictures that stand still.
        ("a=5x,auto:jpeg+tiff,decode-first-frame-only", "a=5x,auto:jpeg+tiff"),
        ("a=5x,blur:2,auto:jpeg+tiff,transform-animated-image", "a=5x,blur:2,auto:jpeg+tiff"),
        ("a=5x,gif,keep-profile", "a=5x,gif"),
        ("a=5x,sharpen:0.5:0", "a=5x"), ("a=5x,sharpen:9:0", "a=5x"), ("a=5x,watermark:a.png:opacity=0", "a=5x"),
        ("a=5x,watermark:a.png:opacity=0,blur:1", "a=5x,blur:1"),
    ])
    func equivalentVariantsHaveTheSameCanonicalForm(left: String, right: String) throws {
        let (one, other) = (try VariantSpec.parse(left), try VariantSpec.parse(right))
        #expect(one.canonical == other.canonical)
        #expect(one == other)
        #expect(one.options.values == other.options.values && one.quality == other.quality)
    }

    @Test(arguments: [
        ("a=5x,auto:webp+jpeg,q81", "a=5x,auto:webp+jpeg"), ("a=5x,auto:webp+avif,q80", "a=5x,auto:webp+avif"),
        ("a=5x,auto:webp+avif,q55", "a=5x,auto:webp+avif"), ("a=5x,q80", "a=5x"),
        ("a=5x,auto:jxl+webp,q2", "a=5x,auto:jxl+webp,q5"),
        ("a=5x,auto:webp+avif,near-lossless:20,q50", "a=5x,auto:webp+avif,near-lossless:20"),
        ("a=5x,auto:webp+avif,near-lossless:20", "a=5x,auto:webp+avif,lossless"),
        ("a=50x50,contain,auto:webp+jpeg,background:#ff0000", "a=50x50,contain,auto:webp+jpeg"),
        ("a=50x50,contain,background:#ff0000", "a=50x50,contain"),
        ("a=5x,auto:jpeg+png,background:#ff0000", "a=5x,auto:jpeg+png"),
        ("a=5x,auto:jpeg+webp,decode-first-frame-only", "a=5x,auto:jpeg+webp"),
        ("a=5x,blur:2,auto:webp+avif,transform-animated-image", "a=5x,blur:2,auto:webp+avif"),
        ("a=5x,webp,keep-profile", "a=5x,webp"), ("a=5x,keep-profile", "a=5x"),
        ("a=5x,gif,keep-metadata", "a=5x,gif"), ("a=5x,sharpen:0.5:0.1", "a=5x"),
        ("a=5x,sharpen:0.5:0.1", "a=5x,sharpen:0.6:0.1"), ("a=5x,watermark:a.png:opacity=0.01", "a=5x"),
    ])
    func differentVariantsHaveDifferentCanonicalForms(left: String, right: String) throws {
        #expect(try VariantSpec.parse(left).canonical != VariantSpec.parse(right).canonical)
    }

    /// An effect that changes nothing needs no file.
    @Test func anInvisibleWatermarkNeedsNoFile() throws {
        #expect(try VariantSpec.parse("a=5x,watermark:a.png:opacity=0").assetNames.isEmpty)
        #expect(try VariantSpec.parse("a=5x,watermark:a.png:opacity=0.5").assetNames == ["a.png"])
    }

    @Test(arguments: ["transparent", "#12345600", "#123456fe", "#fff8", "red"])
    func backgroundsOfOpaqueFormatsMustBeOpaque(colour: String) {
        let wanted = "must be a colour without transparency such as #ff8800 or white, not '\(colour)'"
        let cases = [
            ("a=5x,jpeg,background:\(colour)", "a=5x,jpeg,background:\(colour): 'background' \(wanted)"),
            ("a=5x,flatten:\(colour)", "a=5x,flatten:\(colour): 'colour' of 'flatten' \(wanted)"),
            (#"{"name":"a","width":5,"background":"\#(colour)"}"#, "'background' \(wanted)"),
            (#"{"name":"a","width":5,"ops":[{"flatten":"\#(colour)"}]}"#, "'colour' of 'flatten' \(wanted)"),
        ]
        for (text, message) in cases {
            #expect(throws: VariantSpecError(message)) { try VariantSpec.parseList(text) }
        }
    }

    /// Colours other than the background of an opaque format.
    @Test func coloursOfEffectsMayBeTransparent() throws {
        for part in [
            "rotate:30:background=transparent", "pad:1:1:1:1:#0008", "tint:#0008", "round:5:border=1:colour=#0008",
        ] {
            #expect(try VariantSpec.parse("a=5x,\(part)").effects.count == 1)
        }
    }
}
