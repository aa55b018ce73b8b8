import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

/// The worker reads the default picture of a HEIC sequence (HEICS); libheif 1.15 reads no tracks.
@Suite("HEIC sequences", .timeLimit(.minutes(15)))
struct HEICSequenceTests {
    private static let colours: [UInt8] = [10, 90, 170]

    private static func stills() throws -> [[UInt8]] {
        try colours.map { colour in try make(one: TestImages.png(64, 48) { _, _ in (colour, 60, 200, 255) }, "x,heic") }
    }

    @Test(arguments: ["hevc", "msf1"])
    func `A sequence is read as its default picture`(brand: String) throws {
        let stills = try Self.stills()
        let sequence = HEICSequence(of: stills, width: 64, height: 48, brand: brand)
        let file = sequence.bytes(hasDefaultPicture: true)
        let facts = try facts(file)
        #expect(facts.formatName == "heic" && facts.frames == 1)
        #expect(facts.width == 64 && facts.height == 48)
        for spec in ["x,png", "x,webp,lossless", "x,gif", "32x,heic"] {
            #expect(try make(one: file, spec) == make(one: stills[0], spec), "\(spec)")
        }
        #expect(try make(one: file, "x,heic") == file, "Nothing is to be changed, so it stays a sequence.")
    }

    /// ffprobe finds three pictures in one track, and libheif finds none.
    @Test func `A sequence without a default picture is refused with a class`() throws {
        let file = try HEICSequence(of: Self.stills(), width: 64, height: 48, brand: "hevc")
            .bytes(hasDefaultPicture: false)
        #expect(failure { _ = try facts(file) } == .badImage)
        #expect(failure { _ = try make(file, "v=x,png") } == .badImage)
    }

    @Test func `A sequence is truncated only if its default picture is cut`() throws {
        let stills = try Self.stills()
        let file = HEICSequence(of: stills, width: 64, height: 48, brand: "hevc").bytes(hasDefaultPicture: true)
        let start = Array(file.prefix(stills[0].count - 10))
        #expect(failure { _ = try make(start, "v=x,png") } == .truncated)
        #expect(try make(one: Array(file.dropLast(10)), "x,png") == make(one: stills[0], "x,png"))
    }
}

/// A file as phones write it for a burst: a default picture as in any HEIC, and a track of all pictures beside it.
struct HEICSequence {
    private let still: [UInt8]
    private let pictures: [[UInt8]]
    private let configuration: [UInt8]
    private let size: (width: Int, height: Int)
    private let brand: String

    /// - Parameter stills: HEIC files of one picture each, of the same size and made with the same options.
    init(of stills: [[UInt8]], width: Int, height: Int, brand: String) {
        still = stills[0]
        pictures = stills.map { Self.content("mdat", $0) }
        configuration = Self.box("hvcC", Self.content("hvcC", stills[0]))
        size = (width, height)
        self.brand = brand
    }

    func bytes(hasDefaultPicture: Bool) -> [UInt8] {
        let brands = [brand, "\0\0\0\0", "msf1", "hevc", "mif1"].flatMap { Array($0.utf8) }
        // The places in the still's boxes are counted from the file's first byte, so what comes before stays as long.
        let old = Self.number(still[0..<4])
        let head =
            hasDefaultPicture
            ? Self.box("ftyp", Array(brands.prefix(old - 8))) + still[old...]
            : Self.box("ftyp", Array(brands.dropLast(4)))
        let length = movie(startingAt: 0).count
        return head + movie(startingAt: head.count + length + 8) + Self.box("mdat", pictures.flatMap(\.self))
    }

    /// A track of the handler `pict`, 100 ms each; its pictures lie one behind the other from `start`.
    private func movie(startingAt start: Int) -> [UInt8] {
        let length = 100 * pictures.count
        let matrix = Self.numbers(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x4000_0000)
        let starts = pictures.indices.map { start + pictures[..<$0].map(\.count).reduce(0, +) }

        let entry =
            [UInt8](repeating: 0, count: 7) + [1] + [UInt8](repeating: 0, count: 16)
            + TestImages.big(size.width, 2) + TestImages.big(size.height, 2)
            + Self.numbers(0x48_0000, 0x48_0000, 0) + [0, 1] + [UInt8](repeating: 0, count: 32) + [0, 24, 0xFF, 0xFF]
            + configuration
        let table =
            Self.box("stsd", Self.numbers(0, 1) + Self.box("hvc1", entry))
            + Self.box("stts", Self.numbers(0, 1, pictures.count, 100))
            + Self.box("stsc", Self.numbers(0, 1, 1, 1, 1))
            + Self.box("stsz", Self.numbers(0, 0, pictures.count) + pictures.flatMap { TestImages.big($0.count, 4) })
            + Self.box("stco", Self.numbers(0, pictures.count) + starts.flatMap { TestImages.big($0, 4) })
        let place = Self.box("dinf", Self.box("dref", Self.numbers(0, 1) + Self.box("url ", Self.numbers(1))))
        let media =
            Self.box("mdhd", Self.numbers(0, 0, 0, 1_000, length, 0x55C4_0000))
            + Self.box("hdlr", Self.numbers(0, 0) + Array("pict".utf8) + [UInt8](repeating: 0, count: 13))
            + Self.box("minf", Self.box("vmhd", Self.numbers(1, 0, 0)) + place + Self.box("stbl", table))
        let track =
            Self.box(
                "tkhd",
                Self.numbers(7, 0, 0, 1, 0, length, 0, 0, 0, 0) + matrix
                    + Self.numbers(size.width << 16, size.height << 16))
            + Self.box("mdia", media)
        let header =
            Self.numbers(0, 0, 0, 1_000, length, 0x10000, 0x100_0000, 0, 0) + matrix
            + [UInt8](repeating: 0, count: 24) + Self.numbers(2)
        return Self.box("moov", Self.box("mvhd", header) + Self.box("trak", track))
    }

    private static func numbers(_ numbers: Int...) -> [UInt8] { numbers.flatMap { TestImages.big($0, 4) } }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

    private static func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
        TestImages.big(content.count + 8, 4) + Array(name.utf8) + content
    }

    /// Of the first box of this name, wherever it lies.
    private static func content(_ name: String, _ file: [UInt8]) -> [UInt8] {
        let name = Array(name.utf8)
        guard let start = (4..<(file.count - 4)).first(where: { Array(file[$0..<($0 + 4)]) == name }) else { return [] }
        return Array(file[(start + 4)..<(start - 4 + number(file[(start - 4)..<start]))])
    }
}
