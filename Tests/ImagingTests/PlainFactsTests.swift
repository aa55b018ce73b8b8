import SystemPackage
import TestSupport
import Testing

@testable import Imaging

/// What is told without a decoder is what the decoder tells.
@Suite("Facts without a decoder", .timeLimit(.minutes(15)))
struct PlainFactsTests {
    private func plain(_ bytes: [UInt8], limits: ImageLimits = ImageLimits()) throws -> ImageFacts? {
        try withFile(bytes) { PlainFacts(limits: limits).facts(of: $0) }
    }

    /// - Returns: whether they were told.
    private func compare(_ bytes: [UInt8], _ name: String, _ limits: ImageLimits = ImageLimits()) throws -> Bool {
        guard let told = try plain(bytes, limits: limits) else { return false }
        var decoded: ImageFacts?
        #expect(failure { decoded = try facts(bytes, limits: limits) } == nil, "\(name)")
        #expect(decoded == told, "\(name)")
        return true
    }

    @Test func `A plain PNG is told`() throws {
        let bytes = TestImages.png(5, 3)
        let isTold = try compare(bytes, "plain")
        #expect(isTold)
        #expect(try plain(bytes)?.width == 5)
    }

    @Test func `What is cut short, has bytes behind it, or is too large is told the same or not at all`() throws {
        let bytes = TestImages.png(9, 7)
        for count in bytes.indices {
            let isTold = try compare(Array(bytes[..<count]), "\(count) bytes")
            #expect(!isTold)
        }
        let isTold = try compare(bytes + [UInt8](repeating: 0x5A, count: 10_000), "with more behind it")
        #expect(isTold)
        #expect(try plain(bytes, limits: ImageLimits(pixels: 62)) == nil)
    }

    @Test func `Damage is told the same or not at all`() throws {
        var generator = SeededGenerator(seed: 7)
        let bytes = TestImages.png(9, 7)
        for round in 0..<3_000 {
            var damaged = bytes
            // Where the header and the first chunks are, most often.
            let end = round % 3 == 0 ? bytes.count : min(bytes.count, 64)
            for _ in 0...Int.random(in: 0...2, using: &generator) {
                damaged[Int.random(in: 0..<end, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            _ = try compare(damaged, "round \(round)")
        }
    }

    @Test(arguments: ["gAMA", "sRGB", "cHRM", "pHYs", "bKGD", "tIME", "sBIT", "tRNS", "PLTE", "tEXt", "acTL", "IHDR"])
    func `Chunks of any length are told the same or not at all`(_ name: String) throws {
        let bytes = TestImages.png(3, 2)
        for length in [0, 1, 2, 3, 4, 6, 7, 8, 9, 13, 32, 256, 768, 900] {
            let chunk = TestImages.pngChunk(name, [UInt8](repeating: 1, count: length))
            for place in [33, bytes.count - 12] {
                _ = try compare(Array(bytes[..<place] + chunk + bytes[place...]), "\(name) of \(length) at \(place)")
                _ = try compare(
                    Array(bytes[..<place] + chunk + chunk + bytes[place...]), "\(name) of \(length) twice at \(place)")
            }
        }
    }

    @Test(.enabled(if: Corpus.isThere, "\(Corpus.missing)"))
    func `Files of others are told the same or not at all`() throws {
        var told = 0
        for folder in ["pngsuite", "samples", "malformed/png", "malformed/jpeg", "malformed/gif"] {
            for file in Corpus.files(folder) where file.extension != nil {
                let limits = ImageLimits(pixels: 4_000_000)
                if try compare(Corpus.bytes(file), file.string, limits) { told += 1 }
            }
        }
        #expect(told > 100)
    }
}
