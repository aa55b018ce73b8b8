import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// TIFFs with offsets of 64 bits.
@Suite(.timeLimit(.minutes(15)))
struct BigTIFFTests {
    @Test(arguments: [false, true]) func theHeaderOfABigTIFFIsRead(bigEndian: Bool) throws {
        let file = TestImages.bigTIFF(9, 7, bigEndian: bigEndian)
        file.withUnsafeBytes { bytes in
            #expect(ImageFormat.sniff(bytes) == .tiff)
            let directory = TIFFDirectory(ByteReader(bytes))
            #expect(!directory.endsEarly && directory.fields.count == 9)
            #expect(directory.value(of: 256) == 9 && directory.value(of: 257) == 7)
            #expect(!TIFFFormat().endsEarly(ByteReader(bytes)))
            guard case .acceptAs("tiff") = HeaderInspector(limits: ImageLimits()).inspect(bytes) else {
                Issue.record("refused")
                return
            }
        }
        let facts = try facts(file)
        #expect(facts.format == .tiff && facts.width == 9 && facts.height == 7)
        let found = try Raster(make(one: file, "x,png"))
        #expect(found.bytes == (try Raster(TestImages.png(9, 7)).bytes))
    }

    @Test(arguments: [false, true]) func aCutBigTIFFIsTruncated(bigEndian: Bool) {
        let file = TestImages.bigTIFF(9, 7, bigEndian: bigEndian)
        for length in 8..<file.count - 8 {
            let end = failure { _ = try make(Array(file.prefix(length)), "v=4x,png") }
            #expect(end == .truncated, "\(length) of \(file.count)")
        }
    }

    /// Counts and offsets that lie outside of the file, overflow, or would take hours to read.
    @Test(arguments: [false, true]) func hostileNumbersOfABigTIFFAreRefused(bigEndian: Bool) {
        for number: UInt64 in [.max, .max / 2, .max / 2 + 1, .max - 7, 1 << 62, 1 << 33] {
            for numbers in [
                TestImages.BigTIFFNumbers(directory: number), TestImages.BigTIFFNumbers(entries: number),
                TestImages.BigTIFFNumbers(values: [273: number]),
                TestImages.BigTIFFNumbers(counts: [273: number, 279: number], values: [273: number, 279: number]),
            ] {
                let file = TestImages.bigTIFF(9, 7, bigEndian: bigEndian, numbers: numbers)
                let end = failure { _ = try make(file, "v=4x,png") }
                #expect(end == .truncated || end == .badImage, "\(numbers)")
            }
            for tag in [256, 257] {
                let file = TestImages.bigTIFF(9, 7, bigEndian: bigEndian, numbers: .init(values: [tag: number]))
                let end = failure { _ = try make(file, "v=4x,png") }
                #expect(end != nil, "\(tag): \(number)")
            }
        }
    }
}
