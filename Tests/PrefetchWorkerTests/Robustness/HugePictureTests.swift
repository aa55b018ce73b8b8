import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Pictures far beyond the default limit: with a raised limit, memory depends on the result, not on the source.
@Suite(.serialized, .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct HugePictureTests {
    static let hasVips = ChildProcess.find("vips") != nil

    /// What SDWebImage scales large images down to, by default.
    private static let scaledDown = "big=4892x,scale-down-large-images,jpeg"

    /// A scaler that wasn't optimised takes minutes for all of it; a tenth shows the same there. `scripts/test` has it
    /// optimised.
    private static let height: Int = {
        #if DEBUG
            1_500
        #else
            15_000
        #endif
    }()

    private func answer(_ saved: String, _ height: Int = height) async throws -> PictureHelper.Answer {
        try await withTemporaryDirectory { folder in
            let grey = folder.appending("grey.v")
            let colours = folder.appending("colours.v")
            let file = folder.appending("picture" + saved.prefix { $0 != "[" })
            let wide = folder.appending("wide.v")
            for command in [
                ["grey", grey.string, "20000", "1"],
                ["bandjoin", "\(grey) \(grey) \(grey)", colours.string],
                ["linear", colours.string, wide.string, "255 200 100", "0 20 80", "--uchar"],
                ["replicate", wide.string, file.string + saved.drop { $0 != "[" }, "1", "\(height)"],
            ] {
                #expect(try ChildProcess.run("vips", command) == 0, "\(command)")
            }
            return try await PictureHelper.lend(limits: ImageLimits(pixels: 400_000_000)) { helper in
                let source = try FileDescriptor.open(file, .readOnly, options: .closeOnExec)
                defer { try? source.close() }
                return try await helper.make(source, Self.scaledDown, within: 100)
            }
        }
    }

    @Test(.enabled(if: hasVips, "The command-line tools of libvips are not installed."), arguments: [".jpg", ".png"])
    func aPictureOf300MillionPixelsIsReducedInLittleMemory(_ saved: String) async throws {
        let answer = try await answer(saved)
        #expect(answer.isDone && answer.peak < 300, "\(answer)")
        let size = try #require(answer.report?.renditions.first)
        #expect(size.width * size.height <= 62_914_560 / 4 && size.width > 4_500)
    }

    /// libjpeg would hold all coefficients.
    @Test(.enabled(if: hasVips, "The command-line tools of libvips are not installed."))
    func aHugeProgressiveJPEGIsRefused() async throws {
        let answer = try await answer(".jpg[interlace]", 15_000)
        #expect(answer.end == "too-many-pixels" && answer.peak < 150 && answer.seconds < 5, "\(answer)")
    }

    /// libvips puts pictures larger than 100 MB into a temporary file if it can.
    @Test(.enabled(if: hasVips, "The command-line tools of libvips are not installed."))
    func aLargeWebPIsDecodedWithoutATemporaryFile() async throws {
        try await withTemporaryDirectory { folder in
            let file = folder.appending("large.webp")
            let black = folder.appending("black.v")
            #expect(try ChildProcess.run("vips", ["black", black.string, "7000", "5500", "--bands", "3"]) == 0)
            #expect(try ChildProcess.run("vips", ["webpsave", black.string, file.string, "--effort", "0"]) == 0)
            try await PictureHelper.lend { helper in
                let source = try FileDescriptor.open(file, .readOnly, options: .closeOnExec)
                defer { try? source.close() }
                let answer = try await helper.make(source, "a=6900x,jpeg", within: 100)
                #expect(answer.isDone, "\(answer)")
            }
        }
    }

    /// Memory that runs out is a matter of the limit, not of the picture.
    @Test(
        .enabled(if: hasVips, "The command-line tools of libvips are not installed."),
        arguments: ["--effort 0", "--lossless 1"])
    func aWebPTooLargeForTheMemoryIsNoBadImage(_ option: String) async throws {
        try await withTemporaryDirectory { folder in
            let file = folder.appending("large.webp")
            let black = folder.appending("black.v")
            #expect(try ChildProcess.run("vips", ["black", black.string, "9900", "9900", "--bands", "3"]) == 0)
            let words = option.split(separator: " ").map(String.init)
            let saved = option.hasPrefix("--lossless") ? ["--lossless", "--effort", "0"] : words
            #expect(try ChildProcess.run("vips", ["webpsave", black.string, file.string] + saved) == 0)
            try await PictureHelper.lend { helper in
                let source = try FileDescriptor.open(file, .readOnly, options: .closeOnExec)
                defer { try? source.close() }
                for variants in ["a=x,png", "a=9899x,jpeg", "a=x,webp", "a=100x,png", ""] {
                    let answer = try await helper.make(source, variants, within: 100)
                    #expect(
                        answer.isDone || ["too-many-pixels", "encode", "transform"].contains(answer.end), "\(answer)")
                    if variants.hasPrefix("a=100x") { #expect(answer.isDone, "\(answer)") }
                    if answer.end == "too-many-pixels" { #expect(answer.message.contains("MiB"), "\(answer)") }
                }
            }
        }
    }
}
