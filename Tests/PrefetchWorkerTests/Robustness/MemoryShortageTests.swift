import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Memory that runs out during decoding is a matter of the process's limit, and never of the picture.
@Suite(.serialized, .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct MemoryShortageTests {
    private static let film = TestImages.gif(1_200, 1_000, frames: [40, 200])
    private static let still = TestImages.png(2_000, 1_600)

    /// Where nothing was optimised our code for frames takes minutes for so many pixels, so one animation must do.
    static let sources: [String] = {
        let stills = ["png,progressive", "gif", "webp", "avif", "jxl", "heic"].map { "still \($0)" }
        #if DEBUG
            return stills + ["moving webp"]
        #else
            return stills + ["gif", "png", "webp", "avif", "jxl"].map { "moving \($0)" }
        #endif
    }()

    /// With so little memory left that it runs out at the start, in the middle, at the end, and not at all.
    @Test(
        .enabled(if: ChildProcess.find("prlimit") != nil, "There is no prlimit of util-linux."), arguments: sources)
    func `A shortage of memory never makes a picture a bad image`(_ name: String) async throws {
        let format = name.split(separator: " ")[1]
        let isFilm = name.hasPrefix("moving")
        let picture = try await PictureHelper.lend { helper in
            let source = isFilm ? Self.film : Self.still
            let made = try await helper.make(source, "v=x,\(format)", within: 100)
            #expect(made.isDone, "\(made)")
            return made.files.first ?? []
        }
        var ends: Set<String> = []
        // libjxl ends its process when it can't have memory.
        let fitting: Set = ["done", "too-many-pixels", "encode", "transform", format == "jxl" ? "died" : "done"]
        for megabytes in [0, 4, 500] {
            for variants in ["a=40x,png", "a=1000x,png b=40x,jpeg"] {
                let answer = try await PictureHelper.lend { helper in
                    // What the first picture of a helper needs, it keeps.
                    _ = try await helper.make(TestImages.png(40, 30), "a=20x,png")
                    try Self.leave(megabytes, to: helper.process)
                    return try await helper.make(picture, variants, within: 100)
                }
                #expect(fitting.contains(answer.end), "\(megabytes) MiB, '\(variants)': \(answer)")
                if megabytes == 500 { #expect(answer.isDone, "'\(variants)': \(answer)") }
                ends.insert(answer.end)
            }
        }
        // The others are decoded in pieces, as far as their formats allow.
        if isFilm, format != "gif", format != "png" { #expect(ends != ["done"], "the memory was never short") }
    }

    /// libjxl needs the most memory for plain areas, and would end the helper.
    @Test(arguments: [
        (1_820, ""), (1_840, ",effort:7"), (2_900, ",lossless"), (2_860, ",effort:6"),
        (3_460, ":white,effort:3"), (1_580, ",effort:9"),
    ])
    func `A plain area of nearly the maximum size is encoded as JPEG XL`(side: Int, options: String) async throws {
        let answer = try await PictureHelper.lend { helper in
            try await helper.make(TestImages.png(40, 30), "v=x,jxl,pad:0:\(side):\(side):0\(options)", within: 100)
        }
        #expect(answer.isDone, "\(answer)")
    }

    /// Lowers its limit to what it has and so many MiB.
    private static func leave(_ megabytes: Int, to process: pid_t) throws {
        let limit = try #require(data(of: process)) + megabytes << 20
        let words = ["--pid", "\(process)", "--data=\(limit):\(limit)"]
        try #require(ChildProcess.run("prlimit", words) == 0)
    }

    /// Bytes that count against the limit.
    private static func data(of process: pid_t) -> Int? {
        let text = String(
            decoding: TestSupport.ProcessTable.contents(of: "/proc/\(process)/status") ?? [], as: UTF8.self)
        let line = text.split(separator: "\n").first { $0.hasPrefix("VmData:") }
        return line.flatMap { Int($0.filter(\.isNumber)) }.map { $0 << 10 }
    }
}
