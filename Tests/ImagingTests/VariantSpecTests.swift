import Core
import FoundationEssentials
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

@Suite(.timeLimit(.minutes(15)))
struct VariantSpecTests {
    private static func message(_ text: String?) -> String? {
        do throws(VariantSpecError) {
            _ = try VariantSpec.parseList(text)
            return nil
        } catch {
            return error.description
        }
    }

    @Test func theFormatAutoEqualsTheOptionAuto() throws {
        let forms = [#"{"name":"a","width":5,"format":"auto"}"#, #"{"name":"a","width":5,"auto":true}"#, "a=5x,auto"]
        let specs = try forms.flatMap { try VariantSpec.parseList($0) }
        #expect(specs.count == 3 && Set(specs).count == 1)
    }

    @Test func theShortFormIsReadInAnyOrder() throws {
        let expected = try VariantSpec(
            name: "thumb", width: 320, height: 240, fit: .cover, enlarge: true, format: .webp, quality: 70)
        #expect(try VariantSpec.parse("thumb=320x240,cover,enlarge,webp,q70") == expected)
        #expect(try VariantSpec.parse("thumb=320x240,q70,webp,enlarge,cover") == expected)
        #expect(try VariantSpec.parse("a=x240,jpg") == VariantSpec(name: "a", height: 240, format: .jpeg))
    }

    @Test func anEmptyTextHasNoVariants() throws {
        for text in [nil, "", " \n"] { #expect(try VariantSpec.parseList(text).isEmpty) }
    }

    @Test func variantsAreSeparatedByWhiteSpaceOrSemicolons() throws {
        #expect(try VariantSpec.parseList("a=1x; b=2x\nc=3x,png ;").map(\.name) == ["a", "b", "c"])
    }

    @Test func jsonEqualsTheShortForm() throws {
        let json =
            #"{"name":"a","width":320,"height":240,"fit":"cover","enlarge":true,"format":"webp","quality":80,"#
            + #""ops":[]}"#
        let short = "a=320x240,cover,enlarge,webp,q80"
        #expect(try VariantSpec.parseList(json) == VariantSpec.parseList(short))
        #expect(try VariantSpec.parseList("[\(json), \"b=5x\"]") == VariantSpec.parseList("\(short) b=5x"))
    }

    @Test func anEncodedSpecIsDecodedUnchanged() throws {
        for text in ["a=320x240,cover,webp,q80", "b=x5", "c=7x,enlarge,png"] {
            let spec = try VariantSpec.parse(text)
            #expect(try JSONDecoder().decode(VariantSpec.self, from: JSONEncoder().encode(spec)) == spec)
        }
    }

    @Test(arguments: [
        ("thumb", "thumb: there is no '='; write it as NAME=320x240"),
        ("thumb=320x,wepb", "thumb=320x,wepb: unknown part 'wepb'; did you mean webp?"),
        ("a=320x240,covr", "a=320x240,covr: unknown part 'covr'; did you mean cover?"),
        ("a=x", "a=x: variant 'a' has neither a width nor a height; give at least one, as in 320x"),
        ("a=320", "a=320: '320' is not a size; write WIDTHxHEIGHT, as in 320x240, 320x or x240"),
        ("a=0x5", "a=0x5: variant 'a' has width 0; it must be between 1 and 65535"),
        ("a=20000x,webp", "a=20000x,webp: variant 'a' has width 20000; it must be between 1 and 16383 for webp"),
        ("a=5x,q101", "a=5x,q101: variant 'a' has quality 101; it must be between 1 and 100"),
        ("a=5x,png,q9", "a=5x,png,q9: variant 'a' has a quality, and png has none; leave out 'q9'"),
        ("a=5x,png,webp", "a=5x,png,webp: 'webp' gives a format a second time; leave one of them out"),
        ("a=5x,blr:2", "a=5x,blr:2: unknown part 'blr:2'; did you mean blur?"),
        ("a=5x,blur", "a=5x,blur: 'blur' needs its 'sigma'; write blur:SIGMA"),
        ("a=5x,blur:two", "a=5x,blur:two: 'sigma' of 'blur' must be a number between 0.3 and 250, not 'two'"),
        ("a=5x,blur:1:2", "a=5x,blur:1:2: 'blur' has one value too many; write blur:SIGMA"),
        ("a=5x,blur:1e9", "a=5x,blur:1e9: 'sigma' of 'blur' must be a number between 0.3 and 250, not '1e9'"),
        (
            "a=5x,rotate:5:canvas=grow:canvas=clip",
            "a=5x,rotate:5:canvas=grow:canvas=clip: 'rotate:5:canvas=grow:canvas=clip' gives 'canvas' a second time; "
                + "leave one of them out"
        ),
        (
            "a=5x,tint:red",
            "a=5x,tint:red: 'colour' of 'tint' must be a colour such as #ff8800, #ff880080, white or transparent, "
                + "not 'red'"
        ),
        (
            "a=5x,resize,resize",
            "a=5x,resize,resize: variant 'a' has 'resize' twice; there is one box, so leave one of them out"
        ),
        ("a=5x,effort", "a=5x,effort: 'effort' needs a value; write effort:VALUE"),
        ("a=5x,webp,effort:9", "a=5x,webp,effort:9: variant 'a' has effort 9; for webp it must be between 0 and 6"),
        (
            "a=5x,jpeg,lossless",
            "a=5x,jpeg,lossless: variant 'a' has 'lossless', which means nothing for jpeg; leave it out"
        ),
        (
            "a=5x,auto:jpeg+png,lossless",
            "a=5x,auto:jpeg+png,lossless: variant 'a' has 'lossless', which means nothing for jpeg, png; leave it out"
        ),
        (
            "a=5x,coder:mine,chroma:420",
            "a=5x,coder:mine,chroma:420: variant 'a' has 'chroma', which means nothing for the coder 'mine'; leave it out"
        ),
        ("a=x,enlarge", "a=x,enlarge: variant 'a' has neither a width nor a height; give at least one, as in 320x"),
        (
            "a=5x,watermark:https://e.com/a.png:north",
            "a=5x,watermark:https://e.com/a.png:north: 'watermark:https://e.com/a.png:north': a URL has colons, which "
                + "divide values here; write the variant as JSON, with {\"watermark\":{\"image\":\"https://…\"}} "
                + "among its \"ops\""
        ),
        ("a=5x,webp,auto", "a=5x,webp,auto: variant 'a' has 'auto' and 'webp'; leave one of them out"),
        ("a=5x5,focus:2:0", "a=5x5,focus:2:0: 'x' of 'focus' must be a number between 0 and 1, not '2'"),
        ("a=5x5,north,south", "a=5x5,north,south: 'south' gives a position a second time; leave one of them out"),
        ("a=5x,", "a=5x,: it ends with a comma; write a variant without spaces, as in thumb=320x240,webp"),
        ("a=5x,,webp", "a=5x,,webp: there is nothing between two commas; leave one out"),
        ("original=5x", "original=5x: 'original' names the source itself and cannot be a variant; choose another name"),
        ("a=5x a=6x", "there are two variants of the name 'a'; give each its own"),
        (#"{"width":5}"#, "there is no 'name'; every variant needs one"),
        (#"{"name":"a","widht":5}"#, "unknown key 'widht'; did you mean 'width'?"),
        (#"{"name":"a","width":"5"}"#, "'width' must be a whole number between 1 and 65535, not a string"),
        (#"{"name":"a","width":5.5}"#, "'width' must be a whole number between 1 and 65535, not 5.5"),
        (#"{"name":"a","width":5,"enlarge":1}"#, "'enlarge' must be true or false, not 1"),
        (#"{"name":"a","ops":[{"blur":{"sigam":2}}]}"#, "'blur' has no parameter 'sigam'; did you mean 'sigma'?"),
        (#"{"name":"a","ops":[{"blur":{}}]}"#, "'blur' needs its 'sigma'; write blur:SIGMA"),
        (#"{"name":"a","ops":["blurr"]}"#, "unknown effect 'blurr'; did you mean blur?"),
        (
            #"{"name":"a","ops":[{"blur":2,"flip":{}}]}"#,
            #"an effect must be an object of one member, as in {"blur":{"sigma":2}}"#
        ),
        (#"{"name":"a","ops":{"blur":2}}"#, "'ops' must be an array, not an object"),
        (
            #"{"name":"a","width":5,"effort":"6"}"#,
            "'effort' must be a whole number between 0 and 10, not a string"
        ),
        (#"{"name":"a","width":5,"position":"nroth"}"#, "'nroth' is no position; did you mean north?"),
        (#"{"name":"a","width":5,"wid\u0074h":6}"#, "the key 'width' is there twice; leave one of them out"),
        (
            #"[{"name":"a","ops":[{"blur":{"sigma":2,"sigma":2}}]},{"name":"b"}]"#,
            "the key 'sigma' is there twice; leave one of them out"
        ),
        (#"["a=5x", 7]"#, "variant 2 of the array: a variant must be an object or a short form, not 7"),
    ])
    func mistakesAreRefusedWithTheRightForm(text: String, expected: String) {
        #expect(Self.message(text) == expected)
    }

    @Test(arguments: [
        "-a=5x", "=5x", "a/b=5x", "\(String(repeating: "n", count: 65))=5x", "ä=5x", "a=-5x", "a=+5x",
        "a=99999999999999999999x", "{", "[1",
    ])
    func invalidVariantsAreRefused(text: String) {
        #expect(Self.message(text) != nil)
    }

    @Test func moreThanSixtyFourVariantsAreRefused() {
        let list = { (count: Int) in (0..<count).map { "v\($0)=5x" }.joined(separator: " ") }
        #expect(Self.message(list(64)) == nil)
        #expect(Self.message(list(65)) == "there are 65 variants; 64 is the maximum")
    }
}

@Suite(.timeLimit(.minutes(15)))
struct CanonicalTests {
    private static func canonical(_ text: String) throws -> String { try VariantSpec.parse(text).canonical }

    @Test(arguments: [
        ("a=320x240", "b=320x240,inside"), ("a=5x,webp", "a=5x,webp,q80"), ("a=5x,jpg", "a=5x,jpeg,q80"),
        ("a=5x,avif", "a=5x,q55,avif"), ("a=5x,cover", "a=5x,fill"),
        // The box and what it keeps.
        ("a=5x,cover,north", "a=5x"), ("a=5x5,inside,north", "a=5x5"), ("a=5x5,fill,attention", "a=5x5,fill"),
        ("a=5x5,contain,attention", "a=5x5,contain"), ("a=5x5,contain,entropy", "a=5x5,contain,centre"),
        ("a=5x5,cover,focus:0:0", "a=5x5,cover,north-west"), ("a=5x5,cover,focus:0.5:1", "a=5x5,cover,south"),
        ("a=5x5,cover,focus:0.30:0.7", "a=5x5,cover,focus:.3:0.70"), ("a=x,png,enlarge", "a=x,png"),
        ("a=x,png,cover", "a=x,png"),
        // Formats and what their encoders are told.
        ("a=5x,auto:webp", "a=5x,webp"), ("a=5x,auto:jpeg,q80", "a=5x,jpeg"),
        ("a=5x,auto", "a=5x,auto:avif+jpeg+png+webp"), ("a=5x,auto:png+webp", "a=5x,auto:webp+png+webp"),
        ("a=5x,webp,lossless,q30", "a=5x,webp,lossless"), ("a=5x,webp,near-lossless:100", "a=5x,webp,lossless"),
        ("a=5x,webp,near-lossless:20,lossless,q9", "a=5x,webp,near-lossless:20"),
        ("a=5x,avif,lossless,chroma:420", "a=5x,avif,lossless"), ("a=5x,webp,effort:4", "a=5x,webp"),
        ("a=5x,gif,effort:3", "a=5x,gif"), ("a=5x,png,effort:3", "a=5x,png"),
        ("a=5x,jpeg,chroma:420", "a=5x,jpeg"), ("a=5x,jpeg,q90,chroma:444", "a=5x,jpeg,q90"),
        ("a=5x,avif,chroma:auto", "a=5x,avif,chroma:420"), ("a=5x,gif,colours:256", "a=5x,gif"),
        ("a=5x,png,colours:200", "a=5x,png,colours:16"), ("a=5x,png,colours:3", "a=5x,png,colours:2"),
        ("a=5x,png,background:black", "a=5x,png"), ("a=5x,jpeg,background:#fff", "a=5x,jpeg"),
        ("a=5x,jpeg,background:#123456ff", "a=5x,jpeg,background:#123456"),
        ("a=5x,jpeg,keep-metadata:no", "a=5x,jpeg"),
        // Animations.
        ("a=5x,jpeg,decode-first-frame-only", "a=5x,jpeg"), ("a=5x,transform-animated-image", "a=5x"),
        ("a=5x,tiff,blur:2,transform-animated-image", "a=5x,tiff,blur:2"),
        ("a=5x,blur:2,decode-first-frame-only,transform-animated-image", "a=5x,blur:2,decode-first-frame-only"),
        ("a=5x,command:c,decode-first-frame-only", "a=5x,command:c"),
        // Effects.
        ("a=5x,flip:both", "a=5x,rotate:180"), ("a=5x,rotate:-90", "a=5x,rotate:270"),
        ("a=5x,rotate:90:background=white", "a=5x,rotate:90"), ("a=5x,rotate:180:clip:white", "a=5x,rotate:180"),
        ("a=5x,rotate:360", "a=5x"), ("a=5x,round:9:colour=white", "a=5x,round:9"),
        ("a=5x,round:9:all:2", "a=5x,round:9:border=2"), ("a=5x,round:9::2", "a=5x,round:9:border=2"),
        ("a=5x,round:0:top-left:3", "a=5x,round:0:border=3"), ("a=5x,round:0", "a=5x"),
        ("a=5x,tint:#12345600", "a=5x"), ("a=5x,brightness:1,gamma:1.0,pad:0:0:0:0", "a=5x"),
        ("a=5x,pad:1:1:1:1:#12345600", "a=5x,pad:1:1:1:1"), ("a=5x,flatten:#fff", "a=5x,flatten"),
        ("a=5x,resize,blur:2", "a=5x,blur:2"), ("a=5x,crop:0:0:9:9,resize,blur:2", "a=5x,crop:0:0:9:9,blur:2"),
        ("a=x,png,blur:2,resize", "a=x,png,blur:2"),
    ])
    func equivalentSpecsHaveTheSameCanonicalForm(left: String, right: String) throws {
        let (one, other) = (try VariantSpec.parse(left), try VariantSpec.parse(right))
        #expect(one.canonical == other.canonical)
        // And what is made of them is the same, since the specs are.
        #expect(one.options.values == other.options.values && one.effects == other.effects)
    }

    @Test(arguments: [
        ("a=5x5,cover,north", "a=5x5,cover"), ("a=5x5,contain,north", "a=5x5,contain"), ("a=5x,q80", "a=5x"),
        ("a=5x,auto,q80", "a=5x,auto"), ("a=5x,avif,effort:4", "a=5x,avif"), ("a=5x,jxl,effort:7", "a=5x,jxl"),
        ("a=5x,jpeg,chroma:420,max-bytes:900", "a=5x,jpeg,max-bytes:900"), ("a=5x,jpeg,chroma:444", "a=5x,jpeg"),
        ("a=5x,jpeg,q90,chroma:420", "a=5x,jpeg,q90"), ("a=5x,near-lossless:100", "a=5x,lossless"),
        ("a=5x,decode-first-frame-only", "a=5x"), ("a=5x,webp,decode-first-frame-only", "a=5x,webp"),
        ("a=5x,blur:2,transform-animated-image", "a=5x,blur:2"), ("a=5x,blur:2,resize", "a=5x,blur:2"),
        ("a=5x,rotate:90:clip:white", "a=5x,rotate:90:clip"), ("a=5x,rotate:90:clip", "a=5x,rotate:90"),
        ("a=5x,flip:vertical", "a=5x,flip"), ("a=5x,round:9:border=1:colour=white", "a=5x,round:9:border=1"),
        ("a=5x,background:black", "a=5x"), ("a=5x,png,colours:4", "a=5x,png,colours:2"),
        ("a=5x,gif,colours:200", "a=5x,gif"), ("a=5x,webp,near-lossless:20", "a=5x,webp,lossless"),
        ("a=5x,delegate:d:%1", "a=5x,delegate:d:%01"),
    ])
    func differentSpecsHaveDifferentCanonicalForms(left: String, right: String) throws {
        #expect(try Self.canonical(left) != Self.canonical(right))
    }

    @Test func aVariantsOwnOptionOverridesItsJobs() throws {
        let spec = try VariantSpec.parse("a=5x,decode-first-frame-only:no")
        #expect(try spec.with([.decodeFirstFrameOnly]).canonical == spec.canonical)
        #expect(try VariantSpec.parse("a=5x").with([.decodeFirstFrameOnly]).canonical != spec.canonical)
    }

    @Test func everyDifferenceChangesTheCanonicalForm() throws {
        var seen: [String: String] = [:]
        for size in ["320x240", "240x320", "320x", "x320", "32x0240"] {
            // With a side empty every fit means the same.
            let isBox = size.first != "x" && size.last != "x"
            for fit in isBox ? VariantSpec.Fit.allCases.map(\.rawValue) : ["inside"] {
                for enlarge in ["", ",enlarge"] {
                    for format in ["", ",q80", ",q55", ",jpeg", ",jpeg,q81", ",png", ",webp", ",webp,q81", ",avif"] {
                        let text = "a=\(size),\(fit)\(enlarge)\(format)"
                        let canonical = try Self.canonical(text)
                        #expect(seen[canonical] == nil, "\(text) and \(seen[canonical] ?? "")")
                        seen[canonical] = text
                    }
                }
            }
        }
    }
}

@Suite(.timeLimit(.minutes(15)))
struct VariantPageTests {
    /// The page that explains variants, from this file on up.
    private static func page() throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return String(decoding: try Data(contentsOf: root.appending(path: "docs/reference/variants.md")), as: UTF8.self)
    }

    @Test func everyPartIsInTheReference() throws {
        let page = try Self.page()
        let parts =
            EffectKind.allCases.map(\.rawValue) + VariantOption.allCases.map(\.rawValue) + EffectKind.blendModes
            + Gravity.allCases.map(\.rawValue) + VariantSpec.Fit.allCases.map(\.rawValue)
            + VariantSpec.Output.allCases.map(\.rawValue)
        for part in parts { #expect(page.contains("`\(part)"), "docs/reference/variants.md doesn't explain \(part)") }
    }
}
