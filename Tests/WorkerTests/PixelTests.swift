import TestSupport
import Testing

/// The sizes and the pixels of variants.
@Suite(.serialized, .timeLimit(.minutes(15))) struct PixelTests {
    struct Fitting: Sendable, CustomTestStringConvertible {
        let width, height: Int
        let spec, size: String
        var testDescription: String { "\(width)x\(height) to \(spec)" }

        init(_ width: Int, _ height: Int, _ spec: String, _ size: String) {
            self.width = width
            self.height = height
            self.spec = spec
            self.size = size
        }
    }

    @Test func animationsAboveTheirLimitsFail() async throws {
        let gif = TestImages.gif(40, 30, frames: [100, 200, 10])
        for limit in [["--max-frames", "2"], ["--max-animation-pixels", "3599"]] {
            try await withWorker({ _ in .ok(gif) }) { w in
                try await w.enqueue(w.url("/a.gif"), "--variant", "v=20x,webp")
                try await w.run(["run", "--drain"] + limit + TestWorker.quick, expecting: 2)
                #expect(try await w.value("SELECT class FROM failures") == "too-many-pixels")
                try await w.run(["retry", "1"])
                try await w.sql("DELETE FROM blacklist")
                try await w.drain("--max-frames", "3", "--max-animation-pixels", "3600")
                #expect(try await w.counts("1") == "1|0|0|0|0")
            }
        }
    }

    /// Each fit's size; the rows of 100×200 are SDWebImage's own.
    @Test func everyFitHasItsSize() async throws {
        let fittings = [
            Fitting(100, 200, "150x150", "75|150"), Fitting(100, 200, "300x300", "100|200"),
            Fitting(100, 200, "300x300,enlarge", "150|300"), Fitting(100, 200, "50x", "50|100"),
            Fitting(100, 200, "x50", "25|50"), Fitting(100, 200, "50x50,inside", "25|50"),
            Fitting(100, 200, "50x50,outside", "50|100"), Fitting(100, 200, "50x50,cover", "50|50"),
            Fitting(100, 200, "50x50,contain", "50|50"), Fitting(100, 200, "50x50,fill", "50|50"),
            Fitting(100, 200, "200x200,fill,enlarge", "200|200"), Fitting(160, 120, "80x80", "80|60"),
            Fitting(160, 120, "80x80,outside", "107|80"), Fitting(160, 120, "10x10,cover,webp", "10|10"),
            Fitting(160, 120, "400x300,cover,enlarge,jpeg", "400|300"),
        ]
        let sizes = Set(fittings.map { "/\($0.width)x\($0.height)" })
        let images = Dictionary(
            uniqueKeysWithValues: sizes.map { name in
                let numbers = name.dropFirst().split(separator: "x").compactMap { Int($0) }
                return (name, TestImages.png(numbers[0], numbers[1]))
            })
        try await withWorker({ .ok(images[$0.path] ?? []) }) { w in
            for fitting in fittings {
                try await w.enqueue(w.url("/\(fitting.width)x\(fitting.height)"), "--variant", "v=\(fitting.spec)")
            }
            try await w.drain()
            let found = try await w.rows("SELECT width, height FROM results WHERE variant = 'v' ORDER BY job")
            for (fitting, size) in zip(fittings, found) { #expect(size == fitting.size, "\(fitting.testDescription)") }
            #expect(found.count == fittings.count)
        }
    }

    static let hasVips = ["vips", "vipsthumbnail", "vipsheader"].allSatisfy { ChildProcess.find($0) != nil }

    @Test(
        .enabled(if: hasVips, "The command-line tools of libvips are not installed."),
        arguments: ["png", "jpeg,q90", "webp,q90"])
    func aVariantHasThePixelsOfVipsthumbnail(_ output: String) async throws {
        let picture = TestImages.png(320, 240)
        try await withWorker({ _ in .ok(picture) }) { w in
            let source = w.place("source.png")
            try w.write(picture, to: source)
            let format = output.prefix { $0 != "," }
            try await w.enqueue(w.url("/a"), "--variant", "v=100x100,\(output)")
            try await w.drain()
            let ours = try await w.path(w.url("/a"), variant: "v")
            let suffix = format == "png" ? "" : "[Q=90]"
            let theirs = w.place("theirs.\(format)")
            try await w.run(source, "-s", "100x100", "-o", theirs + suffix, program: "vipsthumbnail")
            for field in ["width", "height", "bands"] {
                let size = try await w.run("-f", field, theirs, program: "vipsheader").line
                #expect(try await w.run("-f", field, ours, program: "vipsheader").line == size)
            }
            #expect(try await meanDifference(ours, theirs, w) <= 2.55)
        }
    }

    /// Of all samples, from 0 to 255.
    private func meanDifference(_ a: String, _ b: String, _ w: TestWorker) async throws -> Double {
        let difference = w.place("difference.v")
        let absolute = w.place("absolute.v")
        try await w.run("subtract", a, b, difference, program: "vips")
        try await w.run("abs", difference, absolute, program: "vips")
        return try #require(Double(try await w.run("avg", absolute, program: "vips").line))
    }

    @Test(.enabled(if: !samples.isEmpty, "There is no ../shared/corpus beside the package."))
    func photographsOfTheCorpusBecomeThumbnails() async throws {
        try await withWorker({ request in
            let file = samples.first { $0.hasSuffix(request.path) }
            return file.flatMap { ProcessTable.contents(of: $0) }.map { .ok($0) } ?? .status(404)
        }) { w in
            let urls = samples.map { w.url("/\($0.split(separator: "/").last ?? "")") }
            try await w.enqueue(urls, "--variant", "thumb=100x100,cover,webp")
            try await w.drain()
            #expect(
                try await w.value(
                    "SELECT count(*) FROM results WHERE variant = 'thumb' AND width = 100 AND height = 100")
                    == "\(samples.count)")
        }
    }
}

private let samples: [String] = {
    let package = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    let folder = "/\(package)/shared/corpus/samples"
    return fileNames(in: folder).filter { $0 != "LICENSE" }.map { "\(folder)/\($0)" }
}()
