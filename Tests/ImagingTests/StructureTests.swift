import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// A file that is cut anywhere ends early; a whole file doesn't, even with bytes behind it.
@Suite(.timeLimit(.minutes(15)))
struct StructureTests {
    private static let images: [(ImageFormat, [UInt8])] =
        // A bare JPEG XL codestream has no end mark; it is asked about only after its decoder has failed.
        ImageFormat.allCases.filter { $0 != .jxl }.map { ($0, SampleImage.bytes(of: $0)) } + [
            (.png, TestImages.png(9, 9)), (.gif, TestImages.gif(9, 9, frames: [1, 2])),
            (.tiff, TestImages.tiff(9, 9)), (.tiff, TestImages.tiff(9, 9, bigEndian: true)),
        ]

    @Test(arguments: images)
    func aWholeFileDoesNotEndEarly(format: ImageFormat, bytes: [UInt8]) {
        #expect(!bytes.withUnsafeBytes { format.definition.endsEarly(ByteReader($0)) })
    }

    @Test(arguments: images)
    func aFileCutAnywhereEndsEarly(format: ImageFormat, bytes: [UInt8]) {
        for length in 12..<(bytes.count - 4) {
            let endsEarly = bytes.prefix(length).withUnsafeBytes { format.definition.endsEarly(ByteReader($0)) }
            #expect(endsEarly, "cut to \(length) of \(bytes.count)")
        }
    }

    /// A file with a box of pictures is whole; a file without such a box is cut.
    @Test(arguments: [("mdat", true), ("jxlc", true), ("jxlp", true), ("free", false)])
    func boxesWithPicturesDecideWhetherAFileIsWhole(name: String, isWhole: Bool) {
        let file = Self.box("ftyp", Array("heic".utf8) + [0, 0, 0, 0]) + Self.box(name, [1, 2, 3])
        #expect(file.withUnsafeBytes { Boxes.endEarly(ByteReader($0)) } == !isWhole)
        #expect(file.dropLast().withUnsafeBytes { Boxes.endEarly(ByteReader($0)) })
    }

    @Test(arguments: [("idat", true), ("iloc", false)])
    func aMetaBoxWithPictureDataIsWhole(name: String, isWhole: Bool) {
        let meta = Self.box("meta", [0, 0, 0, 0] + Self.box("hdlr", [0, 0, 0, 0]) + Self.box(name, [1, 2, 3]))
        #expect(meta.withUnsafeBytes { Boxes.endEarly(ByteReader($0)) } == !isWhole)
    }

    private static func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
        [0, 0, 0, UInt8(8 + content.count)] + Array(name.utf8) + content
    }

    @Test func theEndMarkOfAThumbnailDoesNotEndTheImage() {
        let thumbnail: [UInt8] = [0xFF, 0xE1, 0, 8, 0xFF, 0xD8, 0, 0, 0xFF, 0xD9]
        let jpeg: [UInt8] = [0xFF, 0xD8] + thumbnail + [0xFF, 0xDA, 0, 4, 0, 0, 1, 2, 3]
        #expect(jpeg.withUnsafeBytes { JPEGFormat().endsEarly(ByteReader($0)) })
        #expect(!(jpeg + [0xFF, 0xD9]).withUnsafeBytes { JPEGFormat().endsEarly(ByteReader($0)) })
    }
}
