import TestSupport
import Testing

@testable import Imaging

/// What means the same in every case is made once, and what doesn't isn't. See ``CanonicalTests`` for single formats.
@Suite(.timeLimit(.minutes(15)))
struct IdentityTests {
    @Test(arguments: ["transparent", "#12345600", "#123456fe", "#fff8", "red"])
    func whatLiesUnderAPictureIsOpaque(colour: String) {
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

    /// Elsewhere it means what it says.
    @Test func otherColoursMayBeTransparent() throws {
        for part in [
            "rotate:30:background=transparent", "pad:1:1:1:1:#0008", "tint:#0008", "round:5:border=1:colour=#0008",
        ] {
            #expect(try VariantSpec.parse("a=5x,\(part)").effects.count == 1)
        }
    }
}
