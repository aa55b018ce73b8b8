import Core
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Every colour type, depth, filter and odd size, compared with a decoder that shares no line with libpng.
@Suite(.timeLimit(.minutes(15)), .enabled(if: Corpus.isThere, "\(Corpus.missing)"))
struct PNGSuiteTests {
    static func files(corrupt: Bool) -> [FilePath] {
        Corpus.files("pngsuite").filter {
            $0.extension == "png" && $0.lastComponent?.string.hasPrefix("x") == corrupt
        }
    }

    @Test func validFilesHaveTheirSizesAndPixels() throws {
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

    /// The same data as the first frame of an animation, in IDAT, and as the second, in fdAT.
    @Test func validFilesHaveTheSamePixelsAsFramesOfAnAnimation() throws {
        for file in Self.files(corrupt: false) {
            let name = file.lastComponent?.string ?? ""
            let bytes = try Corpus.bytes(file)
            let expected = try #require(PlainPNG(bytes), "\(name)")
            let film = try Film(Self.animated(bytes))
            #expect(film.durations == [100, 250] && film.loopCount == 3, "\(name)")
            let wanted = Film.visible(expected.pixels.map { UInt8($0 >> 8) })
            for frame in film.frames {
                #expect(frame.count == wanted.count, "\(name)")
                #expect(zip(frame, wanted).allSatisfy { abs(Int($0) - Int($1)) <= 1 }, "\(name)")
            }
        }
    }

    /// https://www.w3.org/TR/png-3/#apng-frame-based-animation
    static func animated(_ still: [UInt8]) -> [UInt8] {
        var place = 8
        var chunks: [(name: String, data: [UInt8])] = []
        while place + 12 <= still.count {
            let count = still[place..<place + 4].reduce(0) { $0 << 8 | Int($1) }
            let name = String(decoding: still[place + 4..<place + 8], as: UTF8.self)
            chunks.append((name, Array(still[place + 8..<place + 8 + count])))
            place += 12 + count
        }
        func control(_ number: Int, delay: Int) -> [UInt8] {
            let size = Array(chunks[0].data.prefix(8)) + [UInt8](repeating: 0, count: 8)
            let times = TestImages.big(delay, 2) + TestImages.big(1_000, 2)
            return TestImages.pngChunk("fcTL", TestImages.big(number, 4) + size + times + [0, 0])
        }
        var file = Array(still.prefix(8))
        let data = chunks.filter { $0.name == "IDAT" }.map(\.data)
        for chunk in chunks where chunk.name != "IEND" && chunk.name != "IDAT" {
            file += TestImages.pngChunk(chunk.name, chunk.data)
            guard chunk.name == "IHDR" else { continue }
            file += TestImages.pngChunk("acTL", TestImages.big(2, 4) + TestImages.big(3, 4))
        }
        file += control(0, delay: 100)
        for part in data { file += TestImages.pngChunk("IDAT", part) }
        file += control(1, delay: 250)
        for (number, part) in data.enumerated() {
            file += TestImages.pngChunk("fdAT", TestImages.big(2 + number, 4) + part)
        }
        return file + TestImages.pngChunk("IEND", [])
    }

    @Test func corruptFilesEndInAClass() throws {
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
