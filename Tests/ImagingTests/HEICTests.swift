import Core
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

@Suite("HEIC is written", .timeLimit(.minutes(15)))
struct HEICTests {
    private static let picture = TestImages.png(160, 120) { x, y in
        (UInt8(x), UInt8(y * 2), UInt8((x + y) & 255), 255)
    }

    @Test(arguments: [("x,heic", 6.0), ("x,heic,q90", 4), ("x,heic,q90,chroma:444", 3), ("x,heic,lossless", 1.1)])
    func `A HEIC is near to its source`(spec: String, most: Double) throws {
        let made = try make(Self.picture, "v=\(spec)")
        #expect(made.report.renditions.map(\.formatName) == ["heic"])
        #expect(try facts(made.files[0]).formatName == "heic")
        let raster = try Raster(made.files[0])
        let difference = raster.difference(to: try Raster(Self.picture))
        #expect(raster.size == "160x120" && difference < most, "\(spec): \(difference)")
    }

    @Test func `A HEIC keeps alpha and odd sizes`() throws {
        let source = TestImages.png(61, 37, kind: .rgba) { x, y in (200, 90, 40, x < 30 ? 0 : y < 20 ? 128 : 255) }
        let raster = try Raster(make(one: source, "x,heic,q90"))
        #expect(raster.size == "61x37" && raster.channels == 4)
        #expect(raster[5, 5][3] < 12 && abs(raster[50, 5][3] - 128) < 12 && raster[50, 30][3] > 243)
    }

    @Test func `The same source gives the same bytes`() throws {
        #expect(try make(one: Self.picture, "90x,heic") == make(one: Self.picture, "90x,heic"))
    }

    @Test func `Lower qualities make smaller files, down to max-bytes`() throws {
        let sizes = try [90, 55, 20].map { try make(one: Self.picture, "x,heic,q\($0)").count }
        #expect(sizes == sizes.sorted(by: >))
        #expect(try make(one: Self.picture, "x,heic,max-bytes:\(sizes[2] + 50)").count <= sizes[2] + 50)
    }

    @Test func `Equivalent HEIC variants are equal`() throws {
        for (one, other) in [
            ("x,heic,q55", "x,heic"), ("x,heic,chroma:420", "x,heic"),
            ("x,heic,lossless,chroma:444", "x,heic,lossless"),
        ] {
            #expect(try VariantSpec.parse("v=\(one)") == VariantSpec.parse("v=\(other)"))
        }
        #expect(throws: VariantSpecError.self) { try VariantSpec.parse("v=x,heic,effort:3") }
    }

    @Test func `A HEIC source becomes a JPEG by default`() throws {
        let heic = try make(one: Self.picture, "x,heic")
        #expect(try make(heic, "v=90x").report.renditions.map(\.formatName) == ["jpeg"])
        #expect(try make(one: heic, "x,heic") == heic)
    }

    @Test(.enabled(if: ChildProcess.find("heif-convert") != nil, "heif-convert is not installed (libheif-examples)."))
    func `libheif's own tools read the same pixels`() throws {
        try withTemporaryDirectory { directory in
            let (input, output) = (directory.appending("in.heic"), directory.appending("out.png"))
            let file = try make(one: Self.picture, "x,heic,q70")
            try Film.write(file, to: input)
            #expect(try ChildProcess.run("heif-convert", [input.string, output.string]) == 0)
            #expect(try Raster(Corpus.bytes(output)).difference(to: Raster(file)) < 0.5)
            let (png, theirs) = (directory.appending("a.png"), directory.appending("theirs.heic"))
            try Film.write(Self.picture, to: png)
            #expect(try ChildProcess.run("heif-enc", ["-q", "70", png.string, "-o", theirs.string]) == 0)
            #expect(try Raster(Corpus.bytes(theirs)).difference(to: Raster(Self.picture)) < 6)
        }
    }
}
