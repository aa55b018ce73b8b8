import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

/// Frames, durations and loop counts, compared with Chromium's.
@Suite(
    "Animations and Chromium", .serialized, .timeLimit(.minutes(15)),
    .enabled(if: Chromium.program != nil, "\(Chromium.missing)"))
struct ChromiumTests {
    private struct File {
        let name: String
        let bytes: [UInt8]
        /// How far samples may differ: colours are weighted by their alpha, since Chromium multiplies them by it before it
        /// hands them out.
        var tolerance = 1
    }

    /// Chromium 156 takes the colours of moving AVIFs for those of the limited range, those of avifenc as well, though
    /// nclx and bitstream say that they are not; avifdec shows the same colours as we.
    private static let avifTolerance = 24

    private func compare(_ files: [File]) async throws {
        let films = try await ChromiumFilms.films(files.map(\.bytes))
        for (file, shown) in zip(files, films) {
            // Older versions do not know JPEG XL.
            guard let shown else {
                #expect(file.name.hasPrefix("jxl"), "Chromium does not know the format of \(file.name).")
                continue
            }
            let film = try Film(file.bytes)
            #expect(film.size == shown.size, "\(file.name)")
            // Chromium applies the rule for short durations when it plays.
            #expect(film.durations == shown.durations.map { $0 <= 10 ? 100 : $0 }, "\(file.name)")
            #expect(film.loopCount == shown.loopCount, "\(file.name)")
            #expect(film.frames.count == shown.frames.count, "\(file.name)")
            for (number, frame) in film.frames.enumerated() where number < shown.frames.count {
                let difference = Self.difference(frame, shown.frames[number])
                #expect(difference <= file.tolerance, "frame \(number) of \(file.name)")
            }
        }
    }

    private static func difference(_ one: [UInt8], _ other: [UInt8]) -> Int {
        guard one.count == other.count else { return 255 }
        return one.indices.reduce(0) { most, place in
            let weight = place % 4 == 3 ? 255 : Int(one[place | 3])
            return max(most, (abs(Int(one[place]) - Int(other[place])) * weight + 127) / 255)
        }
    }

    @Test func `Chromium shows the frames of written animations in each format`() async throws {
        let durations = [50, 60, 1_000, 20]
        var files: [File] = []
        for format in [VariantSpec.Output.avif, .jxl] {
            for plays in [0, 1, 3] {
                let opaque = try AnimationModernTests.made(
                    format, ",lossless", 48, 40, loopCount: plays, durations: durations,
                    pixel: AnimationModernTests.ball)
                let tolerance = format == .avif ? Self.avifTolerance : 1
                files.append(File(name: "\(format) that plays \(plays) times", bytes: opaque, tolerance: tolerance))
                let soft = try AnimationModernTests.made(
                    format, ",lossless", 48, 40, loopCount: plays, durations: durations,
                    pixel: AnimationModernTests.pixel)
                files.append(File(name: "\(format), half transparent", bytes: soft, tolerance: tolerance))
            }
        }
        for seed in 0..<4 {
            let source = AnimationPNGTests.file(seed).bytes
            for spec in ["x,png,blur:2", "x,webp,lossless", "x,gif"] {
                files.append(File(name: "\(spec) of \(seed)", bytes: try make(one: source, spec)))
            }
        }
        try await compare(files)
    }

    @Test func `Frames of a PNG are blended and disposed as by Chromium`() async throws {
        try await compare((0..<16).map { File(name: "\($0)", bytes: AnimationPNGTests.file($0).bytes) })
    }

    @Test func `Frames of a GIF are disposed as by Chromium`() async throws {
        try await compare(
            AnimationGIFTests.Case.all.map {
                File(name: $0.testDescription, bytes: AnimationGIFTests.gif($0).bytes, tolerance: 0)
            })
    }

    @Test(arguments: [0, 1, 2, 7]) func `A GIF plays as often as in Chromium`(count: Int) async throws {
        var gif = TestGIF(width: 4, height: 4, loopCount: count)
        gif.frames = [TestGIF.Frame(4, 4), TestGIF.Frame(4, 4, seed: 1)]
        let others = try ["gif", "png", "webp,lossless", "avif,lossless"].map {
            File(
                name: "\($0) of a GIF", bytes: try make(one: gif.bytes, "4x,\($0)"),
                tolerance: $0.hasPrefix("avif") ? Self.avifTolerance : 1)
        }
        try await compare([File(name: "GIF", bytes: gif.bytes)] + others)
    }

    @Test func `Frames of a WebP are blended and disposed as by Chromium`() async throws {
        let files = try (0..<8).flatMap { seed in
            try [false, true].map { isSoft in
                let parts = AnimationWebPTests.parts(seed, isSoft: isSoft)
                // Each blending of half-transparent pixels rounds.
                return File(
                    name: "\(seed) \(isSoft)", bytes: try AnimationWebPTests.file(parts, loopCount: seed), tolerance: 2)
            }
        }
        try await compare(files)
    }

    /// The reference pictures of every colour type, depth and filter, as two frames of an animation.
    @Test(.enabled(if: Corpus.isThere, "\(Corpus.missing)"))
    func `Animations of the PNG suite have the frames that Chromium shows`() async throws {
        let files = try PNGSuiteTests.files(corrupt: false).map { path in
            File(name: path.lastComponent?.string ?? "", bytes: PNGSuiteTests.animated(try Corpus.bytes(path)))
        }
        #expect(files.count == 161)
        try await compare(files)
    }
}
