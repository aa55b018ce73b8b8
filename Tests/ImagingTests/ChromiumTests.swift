import SystemPackage
import TestSupport
import Testing

@testable import Imaging
@testable import Variants

/// Frames, durations and numbers of plays: what a browser shows is what is read here.
@Suite(
    "Animations and Chromium", .serialized, .timeLimit(.minutes(15)),
    .enabled(if: Chromium.program != nil, "\(Chromium.missing)"))
struct ChromiumTests {
    /// - Parameter within: how far each sample of a visible pixel may differ.
    private func compare(_ files: [(name: String, bytes: [UInt8])], within most: Int = 0) async throws {
        let films = try await ChromiumFilms.films(files.map(\.bytes))
        for (file, shown) in zip(files, films) {
            // Older versions do not know JPEG XL.
            guard let shown else {
                #expect(file.name.contains("jxl"), "Chromium does not know the format of \(file.name).")
                continue
            }
            let film = try Film(file.bytes)
            #expect(film.size == shown.size, "\(file.name)")
            #expect(film.durations == shown.durations, "\(file.name)")
            #expect(film.loopCount == shown.loopCount, "\(file.name)")
            #expect(film.frames.count == shown.frames.count, "\(file.name)")
            for (number, frame) in film.frames.enumerated() where number < shown.frames.count {
                let difference = Self.difference(frame, shown.frames[number])
                #expect(difference <= most, "frame \(number) of \(file.name)")
            }
        }
    }

    private static func difference(_ one: [UInt8], _ other: [UInt8]) -> Int {
        guard one.count == other.count else { return 255 }
        return zip(one, other).reduce(0) { max($0, abs(Int($1.0) - Int($1.1))) }
    }

    @Test func `Chromium shows what is written in each format`() async throws {
        let durations = [50, 60, 1_000, 20]
        var files: [(String, [UInt8])] = []
        for (format, options) in [(VariantSpec.Output.avif, ",lossless"), (.jxl, ",lossless")] {
            for loops in [0, 1, 3] {
                let bytes = try AnimationModernTests.made(
                    format, options, 48, 40, loopCount: loops, durations: durations, pixel: AnimationModernTests.pixel)
                files.append(("\(format) that plays \(loops) times", bytes))
            }
        }
        for seed in 0..<4 {
            let source = AnimationPNGTests.file(seed).bytes
            for spec in ["x,png,blur:2", "x,webp,lossless", "x,gif"] {
                files.append(("\(spec) of \(seed)", try make(one: source, spec)))
            }
        }
        try await compare(files)
    }

    @Test func `Frames of a PNG are blended and disposed of as by Chromium`() async throws {
        try await compare((0..<16).map { ("\($0)", AnimationPNGTests.file($0).bytes) }, within: 1)
    }

    @Test func `Frames of a GIF are disposed of as by Chromium`() async throws {
        try await compare(AnimationGIFTests.Case.all.map { ("\($0.testDescription)", AnimationGIFTests.gif($0).bytes) })
    }

    @Test func `Frames of a WebP are blended and disposed of as by Chromium`() async throws {
        let files = try (0..<8).flatMap { seed in
            try [false, true].map { isSoft in
                (
                    "\(seed) \(isSoft)",
                    try AnimationWebPTests.file(AnimationWebPTests.parts(seed, isSoft: isSoft), loopCount: seed)
                )
            }
        }
        try await compare(files, within: 1)
    }

    /// The reference pictures of every colour type, depth and filter, as two frames of an animation.
    @Test(.enabled(if: Corpus.isThere, "\(Corpus.missing)"))
    func `Frames made of the PNG suite are those that Chromium shows`() async throws {
        let files = try PNGSuiteTests.files(corrupt: false).map { path in
            (path.lastComponent?.string ?? "", PNGSuiteTests.animated(try Corpus.bytes(path)))
        }
        #expect(files.count == 161)
        try await compare(files, within: 1)
    }
}
