import Core
import Foundation
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Bitmaps made by hand, as Windows and OS/2 have made them.
private struct TestBMP: Sendable, CustomTestStringConvertible {
    var name: String
    /// Of the header after the file's own 14 bytes.
    var length = 40
    var bits: Int
    var compression = 0
    var height = 3
    var width = 5
    /// Red, green, blue, alpha.
    var masks: [Int] = []
    var palette: [[UInt8]] = []
    var data: [UInt8]
    /// By rows from the top: red, green, blue, alpha.
    var expected: [[UInt8]]

    var testDescription: String { name }

    var bytes: [UInt8] {
        var header: [UInt8]
        if length == 12 {
            header =
                TestImages.little(width, 2) + TestImages.little(height, 2) + TestImages.little(1, 2)
                + TestImages.little(bits, 2)
        } else {
            header =
                TestImages.little(width, 4) + TestImages.little(height, 4) + TestImages.little(1, 2)
                + TestImages.little(bits, 2) + TestImages.little(compression, 4)
            header +=
                TestImages.little(data.count, 4) + TestImages.little(0, 8) + TestImages.little(palette.count, 4)
                + TestImages.little(0, 4)
        }
        let words = masks.flatMap { TestImages.little($0, 4) }
        if length >= 52 { header += words }
        header += [UInt8](repeating: 0, count: max(0, length - 4 - header.count))
        if length == 40 { header += words }
        let colours: [UInt8] = palette.flatMap { [$0[2], $0[1], $0[0]] + (length == 12 ? [] : [0]) }
        let offset = 18 + header.count + colours.count
        return Array("BM".utf8) + TestImages.little(offset + data.count, 4) + TestImages.little(0, 4)
            + TestImages.little(offset, 4)
            + TestImages.little(length, 4) + header + colours + data
    }

    // Five by three pixels, in colours that all kinds can show.
    private static let palette: [[UInt8]] = [[0, 0, 0], [255, 0, 0], [0, 255, 0], [255, 255, 255]]
    private static let rows = [[0, 1, 2, 3, 0], [1, 1, 1, 2, 2], [3, 2, 1, 0, 3]]
    private static let colours: [[UInt8]] = rows.flatMap { row in row.map { palette[$0] + [255] } }

    /// Rows from the bottom, padded to four bytes.
    private static func data(_ rows: [[Int]], _ row: ([Int]) -> [UInt8]) -> [UInt8] {
        rows.flatMap { values in
            let bytes = row(values)
            return bytes + [UInt8](repeating: 0, count: (4 - bytes.count % 4) % 4)
        }
    }

    private static func packed(_ values: [Int], _ bits: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: (values.count * bits + 7) / 8)
        for (index, value) in values.enumerated() {
            bytes[index * bits / 8] |= UInt8(value << (8 - bits - index * bits % 8))
        }
        return bytes
    }

    private static func indexed(_ bits: Int) -> [UInt8] { data(rows.reversed()) { packed($0, bits) } }

    private static func masked(_ masks: [Int], _ size: Int, alpha: Int = 0) -> [UInt8] {
        data(rows.reversed()) { row in
            row.flatMap { index in
                let value = zip(masks, palette[index]).reduce(alpha) { $0 | ($1.1 == 255 ? $1.0 : 0) }
                return TestImages.little(value, size)
            }
        }
    }

    private static func bgr(_ row: [Int]) -> [UInt8] { row.flatMap { Array(palette[$0].reversed()) } }

    private static let oneBit: [[UInt8]] = rows.flatMap { row in
        row.map { $0 & 1 == 0 ? [9, 8, 7, 255] : [255, 0, 0, 255] }
    }
    private static let half: [[UInt8]] = colours.map { Array($0.prefix(3)) + [128] }
    private static let dotted: [[UInt8]] = [0, 1, 0, 1, 0].map { palette[$0] + [255] } + colours[5...]

    static let all: [TestBMP] = [
        TestBMP(name: "24 bits", bits: 24, data: data(rows.reversed(), bgr), expected: colours),
        TestBMP(name: "24 bits, from the top", bits: 24, height: -3, data: data(rows, bgr), expected: colours),
        TestBMP(name: "OS/2, 24 bits", length: 12, bits: 24, data: data(rows.reversed(), bgr), expected: colours),
        TestBMP(
            name: "OS/2, 8 bits", length: 12, bits: 8, palette: palette, data: indexed(8),
            expected: colours),
        TestBMP(name: "OS/2's second", length: 64, bits: 24, data: data(rows.reversed(), bgr), expected: colours),
        TestBMP(name: "8 bits", bits: 8, palette: palette, data: indexed(8), expected: colours),
        TestBMP(name: "4 bits", bits: 4, palette: palette, data: indexed(4), expected: colours),
        TestBMP(
            name: "1 bit", bits: 1, palette: [[9, 8, 7], [255, 0, 0]],
            data: data(rows.reversed()) { row in packed(row.map { $0 & 1 }, 1) },
            expected: oneBit),
        TestBMP(name: "16 bits", bits: 16, data: masked([0x7C00, 0x3E0, 0x1F], 2), expected: colours),
        TestBMP(
            name: "16 bits, 5-6-5", bits: 16, compression: 3, masks: [0xF800, 0x7E0, 0x1F],
            data: masked([0xF800, 0x7E0, 0x1F], 2), expected: colours),
        TestBMP(name: "32 bits", bits: 32, data: masked([0xFF_0000, 0xFF00, 0xFF], 4), expected: colours),
        TestBMP(
            name: "32 bits, ten each", bits: 32, compression: 3, masks: [0x3FF0_0000, 0xF_FC00, 0x3FF],
            data: masked([0x3FF0_0000, 0xF_FC00, 0x3FF], 4), expected: colours),
        TestBMP(
            name: "fifth version, alpha", length: 124, bits: 32, compression: 3,
            masks: [0xFF_0000, 0xFF00, 0xFF, 0xFF00_0000],
            data: masked([0xFF_0000, 0xFF00, 0xFF], 4, alpha: 0x8000_0000),
            expected: half),
        TestBMP(
            name: "fourth version, alpha all 0", length: 108, bits: 32, compression: 3,
            masks: [0xFF_0000, 0xFF00, 0xFF, 0xFF00_0000], data: masked([0xFF_0000, 0xFF00, 0xFF], 4),
            expected: colours),
        TestBMP(
            name: "runs of 8 bits", bits: 8, compression: 1, palette: palette,
            data: [0, 5, 3, 2, 1, 0, 3, 0, 0, 0, 3, 1, 2, 2, 0, 0, 1, 0, 0, 3, 1, 2, 3, 0, 0, 1], expected: colours),
        TestBMP(
            name: "runs of 4 bits", bits: 4, compression: 2, palette: palette,
            data: [0, 5, 0x32, 0x10, 0x30, 0, 0, 0, 3, 0x11, 2, 0x22, 0, 0, 4, 0x01, 0, 2, 0, 0, 0, 1],
            expected: dotted),
    ]
}

@Suite(.timeLimit(.minutes(15)))
struct BMPTests {
    private static func pixels(_ bytes: [UInt8]) throws -> [[UInt8]] {
        let image = try bytes.withUnsafeBytes { try BMPCoder().decode($0, limits: ImageLimits()) }
        return stride(from: 0, to: image.pixels.count, by: 4).map { Array(image.pixels[$0..<$0 + 4]) }
    }

    @Test(arguments: TestBMP.all)
    fileprivate func everyKindOfBitmapIsRead(bmp: TestBMP) throws {
        #expect(try Self.pixels(bmp.bytes) == bmp.expected)
        let facts = try facts(bmp.bytes)
        #expect(facts.format == .bmp && facts.width == 5 && facts.height == 3)
        #expect(facts.hasAlpha == (bmp.masks.count == 4))
    }

    @Test(arguments: TestBMP.all)
    fileprivate func aFileCutAnywhereIsTruncatedOrBroken(bmp: TestBMP) {
        let bytes = bmp.bytes
        for length in stride(from: 16, to: bytes.count - 4, by: 16) {
            let code = failure { _ = try make(Array(bytes.prefix(length)), "v=2x,png") }
            #expect(code == .truncated || code == .badImage, "cut to \(length) of \(bytes.count)")
        }
    }

    /// Cut at every byte: the rows from the beginning of the file, and transparency from the first missing row on.
    @Test(arguments: TestBMP.all)
    fileprivate func theRowsOfACutBitmapAreAcceptedWithAcceptDamaged(bmp: TestBMP) throws {
        let bytes = bmp.bytes
        let start = Int(bytes[10]) + Int(bytes[11]) << 8
        var most = 0
        for length in start..<bytes.count {
            let cut = Array(bytes.prefix(length))
            var made: Made?
            let tolerance = DecodeTolerance(acceptsDamage: true)
            let end = failure { made = try make(cut, "v=x,png w=2x,jpeg u=3x", tolerance: tolerance) }
            guard let made else {
                #expect(end == .truncated, "cut to \(length) of \(bytes.count)")
                continue
            }
            // The last padding and the end mark may be missing.
            guard made.report.facts.damage != nil else { continue }
            #expect(made.report.renditions.map(\.format) == [.png, .jpeg, .png])
            let found = try Raster(made.files[0])
            let pixels = (0..<15).map { found[$0 % 5, $0 / 5].map(UInt8.init) }
            #expect(pixels.allSatisfy { $0.count == 4 })
            let inFileOrder = { (rows: [[UInt8]]) in
                bmp.height < 0 ? rows : [10, 5, 0].flatMap { rows[$0..<$0 + 5] }
            }
            let (seen, right) = (inFileOrder(pixels), inFileOrder(bmp.expected))
            let count = seen.lastIndex { $0[3] > 0 }.map { $0 + 1 } ?? 0
            #expect(count > 0 && seen[..<count] == right[..<count], "cut to \(length) of \(bytes.count)")
            #expect(count >= most)
            most = max(most, count)
        }
        #expect(most >= 5)
    }

    /// A header with the largest numbers, and one complete row.
    @Test func aHugeCutBitmapIsRefusedByTheLimits() {
        var bytes = TestImages.bmp(16, 16)
        bytes.replaceSubrange(18..<26, with: [0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0x7F])
        let tolerance = DecodeTolerance(acceptsDamage: true)
        #expect(failure { _ = try make(bytes, "v=x,png", tolerance: tolerance) } == .tooManyPixels)
        let header = bytes.withUnsafeBytes { try? BMPHeader(ByteReader($0)) }
        #expect(header?.wholeRows(of: .max) ?? 0 > 1 << 30)
        #expect(header?.wholeRows(of: 0) == 0)
    }

    @Test func withoutAFormatTheAlphaDecidesBetweenPNGAndJPEG() throws {
        let kept = try TestBMP.all.map { try make($0.bytes, "v=2x").report.renditions.map(\.format) }
        #expect(kept == TestBMP.all.map { [$0.masks.count == 4 ? .png : .jpeg] })
    }

    @Test(arguments: [(0x7FFF_FFFF, 0x7FFF_FFFF), (0x7FFF_FFFF, 1), (100_000, -100_000), (65_536, 65_536)])
    func aHugeSizeIsRefusedBeforeMemoryIsAllocated(width: Int, height: Int) {
        var bmp = TestBMP.all[0]
        (bmp.width, bmp.height) = (width, height)
        #expect(failure { _ = try facts(bmp.bytes) } == .tooManyPixels)
    }

    @Test(arguments: [(0, 3), (-5, 3), (5, 0)])
    func aSizeOfZeroOrLessIsABadImage(width: Int, height: Int) {
        var bmp = TestBMP.all[0]
        (bmp.width, bmp.height) = (width, height)
        #expect(failure { _ = try facts(bmp.bytes) } == .badImage)
    }

    @Test(arguments: [(4, 8), (5, 8), (1, 4), (2, 8), (3, 24), (0, 2), (0, 64)])
    func unknownCompressionsAreBadImages(compression: Int, bits: Int) {
        var bmp = TestBMP.all[0]
        (bmp.compression, bmp.bits) = (compression, bits)
        #expect(failure { _ = try facts(bmp.bytes) } == .badImage)
    }

    @Test func aTextThatBeginsWithBMIsNoBitmap() {
        #expect(failure { _ = try facts(Array("BM is how this text begins, and no more".utf8)) } == .notAnImage)
    }

    /// A read out of bounds would trap.
    @Test func mutatedBitmapsNeverTrap() {
        var random = SeededGenerator(seed: 7)
        let limits = ImageLimits(pixels: 10_000)
        for round in 0..<4_000 {
            var bytes = TestBMP.all[round % TestBMP.all.count].bytes
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            bytes.removeLast(Int.random(in: 0...8, using: &random))
            bytes.withUnsafeBytes {
                _ = BMPFormat().endsEarly(ByteReader($0))
                _ = try? BMPCoder().decode($0, limits: limits)  // Whether it fails is not the question.
            }
        }
    }

    @Test(
        .enabled(if: ChildProcess.find("convert") != nil, "ImageMagick is not installed"),
        arguments: [
            ["-type", "TrueColor", "BMP3:"], ["-type", "Palette", "-colors", "200", "BMP3:"],
            ["-type", "Palette", "-colors", "9", "BMP3:"], ["-monochrome", "BMP3:"],
            ["-type", "Palette", "-colors", "200", "-compress", "RLE", "BMP3:"], ["-type", "TrueColor", "BMP2:"],
            ["-type", "TrueColorAlpha", "-channel", "A", "-evaluate", "set", "50%", "BMP:"],
            ["-type", "TrueColor", "-define", "bmp:subtype=RGB565", "BMP:"],
            ["-type", "TrueColor", "-define", "bmp:subtype=RGB555", "BMP:"],
        ])
    func aBitmapHasThePixelsOfImageMagick(options: [String]) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "bmp-\(UInt64.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let bmp = folder.appending(path: "it.bmp").path
        let rgba = folder.appending(path: "it.rgba").path
        let scene = ["-size", "37x23", "plasma:red-blue", "-depth", "8"]
        let target = (options.last ?? "") + bmp
        try #require(try ChildProcess.run("convert", scene + options.dropLast() + [target]) == 0)
        try #require(try ChildProcess.run("convert", [bmp, "-depth", "8", "RGBA:" + rgba]) == 0)
        let expected = [UInt8](try Data(contentsOf: URL(filePath: rgba)))
        let found = try Self.pixels([UInt8](try Data(contentsOf: URL(filePath: bmp)))).flatMap(\.self)
        #expect(found.count == expected.count)
        #expect(zip(found, expected).allSatisfy { abs(Int($0) - Int($1)) <= 1 })
    }

    /// Sixty bytes can encode a hundred million pixels.
    @Test func aHugeRunLengthBitmapIsRefusedByItsHeader() throws {
        let header =
            TestImages.little(40, 4) + TestImages.little(9_999, 4) + TestImages.little(9_999, 4)
            + TestImages.little(1, 2) + TestImages.little(8, 2) + TestImages.little(1, 4) + TestImages.little(2, 4)
            + TestImages.little(0, 8) + TestImages.little(1, 4) + TestImages.little(0, 4)
        let file =
            Array("BM".utf8) + TestImages.little(60, 4) + TestImages.little(0, 4) + TestImages.little(58, 4)
            + header + [1, 2, 3, 0] + [0, 1]
        #expect(failure { _ = try facts(file) } == .tooManyPixels)
        #expect(try facts(file, limits: ImageLimits(decoderBytes: 1 << 30)).width == 9_999)
        try withFile(file) { #expect(DecoderEstimate(limits: ImageLimits()).bytes($0) > 800 << 20) }
    }
}
