import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// JPEGs with an end marker and with missing data before it: libjpeg fills the gap with grey and only warns.
@Suite(.timeLimit(.minutes(15)))
struct JPEGDamageTests {
    private static let specs = ["", "v=x,png", "v=200x150,fill,png", "v=16x,png", "v=x,png w=100x,webp", "v=x,jpeg"]
    private static let endMarker: [UInt8] = [0xFF, 0xD9]

    private static func picture(_ options: String) throws -> [UInt8] {
        let noise = TestImages.png(200, 150) { x, y in
            (UInt8(x * y * 7 & 255), UInt8((x * 31 ^ y * 17) & 255), UInt8((x * x + y) & 255), 255)
        }
        return try make(one: noise, "200x,jpeg,q90\(options)")
    }

    private static func code(_ bytes: [UInt8], _ specs: String) -> FailureClass? {
        failure { _ = try make(bytes, specs) }
    }

    @Test(arguments: ["", ",progressive"]) func aJPEGWithAGapIsABadImage(options: String) throws {
        let whole = try Self.picture(options)
        let middle = whole.count / 2
        let nothing = [UInt8](repeating: 0, count: 4_000)
        let damaged: [(name: String, bytes: [UInt8])] = [
            ("the first half", Array(whole[..<middle]) + Self.endMarker),
            ("all but the last bytes", Array(whole.dropLast(12)) + Self.endMarker),
            ("a gap of a fifth", Array(whole[..<middle]) + Array(whole[(middle + whole.count / 5)...])),
            ("a gap of 300 bytes", Array(whole[..<middle]) + Array(whole[(middle + 300)...])),
            ("nothing for a while", Array(whole[..<middle]) + nothing + Array(whole[(middle + nothing.count)...])),
            ("a part twice", Array(whole[..<middle]) + Array(whole[(middle - 6_000)...])),
        ]
        for (name, bytes) in damaged {
            for specs in Self.specs {
                #expect(Self.code(bytes, specs) == .badImage, "\(name), '\(specs)'")
            }
        }
    }

    @Test(arguments: ["", ",progressive"]) func surplusBytesOfAJPEGAreNoDamage(options: String) throws {
        let whole = try Self.picture(options)
        let end = whole.count - 2
        let harmless: [(name: String, bytes: [UInt8])] = [
            ("it is whole", whole),
            ("some bytes too many", Array(whole[..<end]) + [1, 2, 3, 4, 5] + Self.endMarker),
            ("padding", Array(whole[..<end]) + [UInt8](repeating: 0, count: 9_000) + Self.endMarker),
            ("a film behind the picture", whole + (0..<9_000).map { UInt8($0 * 7 & 255) }),
            ("stray bytes between segments", whole[..<20] + [1, 2, 3] + whole[20...]),
            ("an unknown Adobe transform", Self.withAdobeSegment(whole)),
        ]
        for (name, bytes) in harmless {
            for specs in Self.specs { #expect(Self.code(bytes, specs) == nil, "\(name), '\(specs)'") }
        }
    }

    /// Its transform code, 9, is none that libjpeg knows.
    private static func withAdobeSegment(_ jpeg: [UInt8]) -> [UInt8] {
        jpeg[..<2] + [0xFF, 0xEE, 0, 14] + Array("Adobe".utf8) + [0, 100, 0, 0, 0, 0, 9] + jpeg[2...]
    }

    /// The message has libjpeg's words.
    @Test func theFailureOfADamagedJPEGHasTheReason() throws {
        let bytes = Array(try Self.picture("").dropLast(3_000)) + Self.endMarker
        do {
            _ = try make(bytes, "v=16x,png")
            Issue.record("It passed.")
        } catch let error as Failure {
            #expect(error.message == "The jpeg is damaged: Corrupt JPEG data: premature end of data segment")
        }
    }
}
