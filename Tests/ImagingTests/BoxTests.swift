import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// The headers of HEIC, AVIF and JPEG XL, read without their decoders.
@Suite(.timeLimit(.minutes(15)))
struct BoxTests {
    private static func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
        TestImages.big(content.count + 8, 4) + Array(name.utf8) + content
    }

    private static let grid: [UInt8] = [0, 0, 2, 3] + TestImages.big(4_000, 2) + TestImages.big(3_000, 2)

    /// A file whose second item is a grid, which lies in `mdat`, in `idat`, or nowhere.
    private static func file(
        method: Int, version: Int = 1, extent: (Int, Int) = (64, 64), place: Int? = nil, depth: UInt8 = 8,
    ) -> [UInt8] {
        let brands: [UInt8] = Array("heic".utf8) + [0, 0, 0, 0] + Array("mif1heic".utf8)
        let ftyp = box("ftyp", brands)
        func meta(_ offset: Int) -> [UInt8] {
            var parts: [UInt8] = [0, 0, 0, 0]
            parts += box("iinf", [0, 0, 0, 0, 0, 2] + name(1, "hvc1") + name(2, "grid"))
            var locations: [UInt8] = [UInt8(version), 0, 0, 0, 0x44, 0x00, 0, 2]
            for (id, offset, length) in [(1, 0, 4), (2, offset, grid.count)] {
                locations += TestImages.big(id, 2)
                if version > 0 { locations += TestImages.big(method, 2) }
                locations += [0, 0, 0, 1] + TestImages.big(offset, 4) + TestImages.big(length, 4)
            }
            parts += box("iloc", locations)
            let size = box("ispe", [0, 0, 0, 0] + TestImages.big(extent.0, 4) + TestImages.big(extent.1, 4))
            let bits = box("pixi", [0, 0, 0, 0, 3, depth, depth, depth])
            parts += box("iprp", box("ipco", size + bits))
            if method == 1 { parts += box("idat", grid) }
            return box("meta", parts)
        }
        let start = ftyp.count + meta(0).count + 8
        return ftyp + meta(place ?? (method == 1 ? 0 : start)) + box("mdat", grid)
    }

    private static func name(_ id: Int, _ type: String) -> [UInt8] {
        box("infe", [2, 0, 0, 0] + TestImages.big(id, 2) + [0, 0] + Array(type.utf8) + [0])
    }

    private static func boxes(_ file: [UInt8]) -> HEIFBoxes { file.withUnsafeBytes { HEIFBoxes(ByteReader($0)) } }

    @Test(arguments: [(0, 0), (0, 1), (1, 1)]) func aGridIsFoundInEveryPlaceOfItsDescription(method: Int, version: Int)
    {
        let boxes = Self.boxes(Self.file(method: method, version: version))
        #expect(
            boxes.grids == [HEIFBoxes.Grid(rows: 3, columns: 4, size: PixelSize(width: 4_000, height: 3_000))])
        #expect(boxes.objection(ImageLimits())?.failureClass == .badImage, "64×64 tiles don't cover it.")
        #expect(boxes.objection(ImageLimits(pixels: 1_000_000))?.failureClass == .tooManyPixels)
    }

    @Test func aGridThatItsTilesCoverIsAccepted() {
        let boxes = Self.boxes(Self.file(method: 0, extent: (1_000, 1_000), depth: 10))
        #expect(boxes.objection(ImageLimits()) == nil && boxes.depth == 10)
    }

    @Test(arguments: [0x7FFF_FFFF, 0xFFFF_FFFF, 100_000]) func aGridOutsideOfTheFileIsIgnored(place: Int) {
        #expect(Self.boxes(Self.file(method: 0, place: place)).grids.isEmpty)
    }

    @Test func cutAndMutatedBoxesNeverTrap() {
        let file = Self.file(method: 0)
        for length in 0..<file.count { _ = Self.boxes(Array(file.prefix(length))) }
        var random = SeededGenerator(seed: 3)
        for _ in 0..<20_000 {
            var file = file
            for _ in 0..<4 { file[Int.random(in: file.indices, using: &random)] = .random(in: 0...255, using: &random) }
            _ = Self.boxes(file).objection(ImageLimits())
            file.withUnsafeBytes { _ = DecoderCost($0, as: .heic, limits: ImageLimits()) }
        }
    }

    @Test func aPictureTooLargeForAHelpersMemoryIsRefused() {
        func code(_ width: Int, _ height: Int, depth: UInt8 = 8) -> FailureClass? {
            let file = Self.file(method: 2, extent: (width, height), depth: depth)
            return file.withUnsafeBytes {
                DecoderCost($0, as: .heic, limits: ImageLimits()).objection(ImageLimits())?.failureClass
            }
        }
        #expect(code(9_000, 9_000) == nil && code(9_500, 9_500) == .tooManyPixels)
        #expect(code(6_000, 6_000, depth: 10) == nil && code(7_000, 7_000, depth: 10) == .tooManyPixels)
        #expect(code(0xFFFF_FFFF, 0xFFFF_FFFF) == .tooManyPixels)
    }

    @Test(arguments: [(1, 1), (40, 30), (256, 256), (64, 48), (300, 200), (513, 7), (9, 600), (1_200, 1_000)])
    func theSizeOfAJPEGXLIsReadFromItsHeader(width: Int, height: Int) throws {
        let file = try make(one: TestImages.png(width, height), "x,jxl,effort:3")
        let size = file.withUnsafeBytes { JXLHeader.size(ByteReader($0)) }
        #expect(size == PixelSize(width: width, height: height))
        var boxed = Self.box("JXL ", [0x0D, 0x0A, 0x87, 0x0A])
        boxed += Self.box("ftyp", Array("jxl ".utf8)) + Self.box("jxlc", file)
        #expect(boxed.withUnsafeBytes { JXLHeader.size(ByteReader($0)) } == size)
        for length in 0..<3 { #expect(file.prefix(length).withUnsafeBytes { JXLHeader.size(ByteReader($0)) } == nil) }
        let limits = ImageLimits(pixels: width * height - 1)
        let verdict = file.withUnsafeBytes { HeaderInspector(limits: limits).inspect($0) }
        if case .refuse(let error) = verdict {
            #expect(error.failureClass == .tooManyPixels)
        } else {
            Issue.record("kept")
        }
    }
}
