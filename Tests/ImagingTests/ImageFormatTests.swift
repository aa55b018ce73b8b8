import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

@Suite(.timeLimit(.minutes(15)))
struct ImageFormatTests {
    private static func brand(_ major: String, _ compatible: [String]) -> [UInt8] {
        TestImages.big(16 + 4 * compatible.count, 4) + Array("ftyp".utf8) + Array(major.utf8) + [0, 0, 0, 0]
            + compatible.flatMap { Array($0.utf8) }
    }

    @Test(
        arguments: [
            ([0xFF, 0xD8, 0xFF, 0xE0], .jpeg),
            (TestImages.pngHeaderOnly(1, 1), .png),
            (Array("GIF87a".utf8), .gif),
            (Array("GIF89a".utf8), .gif),
            (Array("RIFF\0\0\0\0WEBPVP8 ".utf8), .webp),
            ([0x49, 0x49, 0x2A, 0x00], .tiff),
            ([0x4D, 0x4D, 0x00, 0x2A], .tiff),
            (brand("heic", ["mif1"]), .heic),
            (brand("hevx", []), .heic),
            (brand("mif1", ["heic"]), .heic),
            (brand("mif1", ["mif1", "avif"]), .avif),
            (brand("avif", ["mif1"]), .avif),
            (brand("avis", []), .avif),
        ] as [([UInt8], ImageFormat)])
    func signaturesAreRecognised(bytes: [UInt8], format: ImageFormat) {
        #expect(bytes.withUnsafeBytes(ImageFormat.sniff) == format)
    }

    @Test(arguments: [
        "", "GIF88a", "RIFF\0\0\0\0WAVEfmt ", "<svg xmlns='http://www.w3.org/2000/svg'>", "%PDF-1.4",
        "BM123456789012345",
        "II*", "\0\0\0\u{18}ftypisom\0\0\0\0", "\0\0\0\u{18}ftyp",
    ])
    func otherSignaturesAreNotRecognised(text: String) {
        #expect(Array(text.utf8).withUnsafeBytes(ImageFormat.sniff) == nil)
    }

    @Test func oneByteOfASignatureIsNotEnough() {
        #expect([UInt8]([0x89, 0x50, 0x4E, 0x47]).withUnsafeBytes(ImageFormat.sniff) == nil)
    }
}
