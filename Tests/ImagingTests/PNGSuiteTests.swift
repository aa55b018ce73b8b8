import Core
import SystemPackage
import TestSupport
import Testing

@testable import Imaging

/// Every colour type, depth, filter and odd size, compared with a decoder that shares no line with libpng.
@Suite(.timeLimit(.minutes(15)), .enabled(if: Corpus.isThere, "\(Corpus.missing)"))
struct PNGSuiteTests {
    private static func files(corrupt: Bool) -> [FilePath] {
        Corpus.files("pngsuite").filter {
            $0.extension == "png" && $0.lastComponent?.string.hasPrefix("x") == corrupt
        }
    }

    @Test func allThatAreValidHaveTheirSizesAndPixels() throws {
        let files = Self.files(corrupt: false)
        #expect(files.count == 161)
        for file in files {
            let name = file.lastComponent?.string ?? ""
            let bytes = try Corpus.bytes(file)
            let expected = try #require(PlainPNG(bytes), "\(name)")
            let found = try Raster(bytes)
            #expect(found.width == expected.width && found.height == expected.height, "\(name)")
            #expect(Self.difference(found, expected) <= 1, "\(name)")
        }
    }

    /// The largest, in steps of 255. What is under nothing doesn't matter.
    private static func difference(_ found: Raster, _ expected: PlainPNG) -> Int {
        var largest = 0
        for place in 0..<(found.width * found.height) {
            let wanted = expected.pixels[(place * 4)..<(place * 4 + 4)].map { Int($0 >> 8) }
            let pixel = Array(found.bytes[(place * found.channels)..<((place + 1) * found.channels)]).map(Int.init)
            let isGrey = found.channels < 3
            let colours = isGrey ? [pixel[0], pixel[0], pixel[0]] : Array(pixel[0..<3])
            let alpha = found.channels % 2 == 0 ? pixel[found.channels - 1] : 255
            largest = max(largest, abs(alpha - wanted[3]))
            guard wanted[3] > 0 else { continue }
            for (a, b) in zip(colours, wanted) { largest = max(largest, abs(a - b)) }
        }
        return largest
    }

    @Test func thoseThatAreCorruptEndInAClass() throws {
        let files = Self.files(corrupt: true)
        #expect(files.count == 14)
        for file in files {
            let bytes = try Corpus.bytes(file)
            for variants in ["", "v=16x,png", "v=16x,webp w=8x8,cover"] {
                let code = failure { _ = try make(bytes, variants) }
                #expect(
                    code == .badImage || code == .truncated || code == .notAnImage,
                    "\(file), '\(variants)': \(String(describing: code))")
            }
        }
    }
}
