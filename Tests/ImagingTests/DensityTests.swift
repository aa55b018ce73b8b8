import FoundationEssentials
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

@Suite("Densities", .timeLimit(.minutes(15)))
struct DensityTests {
    @Test(arguments: [
        ("a=320x240,@1+@2+@3", "a=320x240 a@2x=640x480 a@3x=960x720"),
        ("a=320x,webp,@3+@2", "a@3x=960x,webp a@2x=640x,webp"),
        ("a=x20,cover,enlarge,q70,@1", "a=x20,cover,enlarge,q70"),
        ("a=9x9,cover,focus:0.2:0.3,max-bytes:900,jpeg,@2", "a@2x=18x18,cover,focus:0.2:0.3,max-bytes:900,jpeg"),
        // Lengths after the box are multiplied, those before it and all else are not.
        (
            "a=9x9,crop:1:2:3:4,round:5:border=1,blur:2,pad:1:2:3:4,watermark:w:margin=3,rotate:30,sharpen:1:2,@2",
            "a@2x=18x18,crop:1:2:3:4,round:10:border=2,blur:4,pad:2:4:6:8,watermark:w:margin=6,rotate:30,sharpen:1:2"
        ),
        ("a=9x9,blur:2,resize,crop:1:2:3:4,@2", "a@2x=18x18,blur:2,resize,crop:2:4:6:8"),
        (#"{"name":"a","width":9,"densities":[1,2],"ops":[{"round":4}]}"#, "a=9x,round:4 a@2x=18x,round:8"),
        (#"[{"name":"a","width":9,"densities":null},"b=5x,@2"]"#, "a=9x b@2x=10x"),
    ])
    func `Each density is parsed as a variant of its own`(text: String, alone: String) throws {
        let specs = try VariantSpec.parseList(text)
        #expect(try specs == VariantSpec.parseList(alone))
        for spec in specs {
            #expect(try JSONDecoder().decode(VariantSpec.self, from: JSONEncoder().encode(spec)) == spec)
        }
    }

    @Test(arguments: [
        (
            "a=9x,@1+2",
            "a=9x,@1+2: '@1+2': densities are whole numbers between 1 and 9, each once; write @1+@2+@3, or [1,2,3] in JSON"
        ),
        ("a=9x,webp,@2+@2", "each once"), ("a=9x,@0", "between 1 and 9"), ("a=9x,@22", "between 1 and 9"),
        ("a=9x,@", "between 1 and 9"), ("a=9x,@²", "between 1 and 9"), ("a=9x,@1,@2", "gives densities a second time"),
        ("a=x,webp,@1+@2", "neither a width nor a height to multiply"),
        ("a=9000x,webp,@2", "variant 'a@2x' has width 18000; it must be between 1 and 16383 for webp"),
        ("a=9x,pad:40000:0:0:0,@2", "'top' of 'pad' must be a whole number between 0 and 65535, not '80000'"),
        ("a=9x,@2 a@2x=7x", "there are two variants of the name 'a@2x'"),
        (#"{"name":"a","width":9,"densities":[]}"#, "each once"),
        (#"{"name":"a","width":9,"densities":2}"#, "write @1+@2+@3, or [1,2,3] in JSON"),
        (#"{"name":"a","width":9,"densities":[1.5]}"#, "densities are whole numbers"),
        (
            (0..<8).map { "v\($0)=5x,@1+@2+@3+@4+@5+@6+@7+@8+@9" }.joined(separator: " "),
            "there are 72 variants; 64 is the maximum"
        ),
    ])
    func `A mistake in densities is refused with a message`(text: String, expected: String) {
        #expect {
            try VariantSpec.parseList(text)
        } throws: { error in
            "\(error)".contains(expected)
        }
    }

    @Test func `Several densities are refused where one variant is expected`() throws {
        #expect(throws: VariantSpecError.self) { try VariantSpec.parse("a=5x,@1+@2") }
        #expect(try VariantSpec.parse("a=5x,@2").width == 10)
    }
}
