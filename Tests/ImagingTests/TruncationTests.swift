import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// A file of each kind, cut at every 64th byte.
@Suite(.timeLimit(.minutes(15)))
struct TruncationTests {
    struct Whole: Sendable, CustomTestStringConvertible {
        let name: String
        /// What may be missing at the end without a pixel of it: end marks, and padding.
        let spare: Int
        /// Several frames; a file that ends between two is a shorter animation.
        var isGIF = false
        let make: @Sendable () throws -> [UInt8]

        var testDescription: String { name }
    }

    private static let picture = TestImages.png(96, 72) { x, y in
        (UInt8(x * 2), UInt8(y * 3), UInt8((x * y * 7) & 255), UInt8(x < 40 ? 255 : 90 + y))
    }

    private static let animation: [UInt8] = {
        var gif = TestGIF(width: 50, height: 40, loopCount: 3)
        gif.frames = (0..<5).map { TestGIF.Frame(50, 40, seed: $0) }
        return gif.bytes
    }()

    static let wholes = [
        Whole(name: "baseline JPEG", spare: 2) { try encoded("96x,jpeg") },
        Whole(name: "progressive JPEG", spare: 2) { try encoded("96x,jpeg,progressive") },
        Whole(name: "JPEG with restart markers", spare: 2) {
            try jpegWithRestartMarkers(TestImages.png(96, 72))
        },
        Whole(name: "PNG", spare: 16) { try encoded("95x,png") },
        Whole(name: "interlaced PNG", spare: 16) { try encoded("95x,png,progressive") },
        Whole(name: "lossy WebP", spare: 1) { try encoded("96x,webp") },
        Whole(name: "lossless WebP", spare: 1) { try encoded("96x,webp,lossless") },
        Whole(name: "animated WebP", spare: 1) { try make(one: animation, "50x,webp") },
        Whole(name: "still GIF", spare: 2, isGIF: true) { try encoded("60x,gif") },
        Whole(name: "animated GIF", spare: 2, isGIF: true) { animation },
        Whole(name: "TIFF", spare: 0) { try encoded("96x,tiff") },
        Whole(name: "plain TIFF", spare: 4) { TestImages.tiff(40, 30) },
        Whole(name: "BMP", spare: 0) { TestImages.bmp(40, 30) },
        // The end mark says nothing that the header doesn't.
        Whole(name: "QOI", spare: 8) { TestImages.qoi(40, 30) },
        Whole(name: "HEIC", spare: 1) { SampleImage.bytes(of: .heic) },
        Whole(name: "AVIF", spare: 1) { try encoded("96x,avif") },
        Whole(name: "JPEG XL", spare: 1) { try encoded("96x,jxl") },
    ]

    private static func encoded(_ spec: String) throws -> [UInt8] { try make(one: picture, spec) }

    @Test(arguments: wholes) func aCutFileNeverSucceeds(_ whole: Whole) throws {
        let bytes = try whole.make()
        #expect(failure { _ = try make(bytes, "v=20x,png") } == nil)
        let ends = whole.isGIF ? Set(TestGIF.frameEnds(of: bytes)) : []
        let cuts = Set(stride(from: 1, to: bytes.count, by: 64)).union(max(1, bytes.count - 40)..<bytes.count)
        for cut in cuts.sorted() {
            let part = Array(bytes.prefix(cut))
            for variants in ["", "v=20x,png", "v=20x,png w=90x,webp"] {
                let code = failure { _ = try make(part, variants) }
                let isTransient = cut >= bytes.count - whole.spare || ends.contains(cut)
                #expect(
                    code == .truncated || isTransient && code == nil,
                    "\(cut) of \(bytes.count) bytes, '\(variants)': \(String(describing: code))")
            }
        }
    }
}

extension TestGIF {
    /// Where an image's data end in a file of any writer.
    static func frameEnds(of file: [UInt8]) -> [Int] {
        func table(_ flags: UInt8) -> Int { flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1) }
        func skip(_ offset: inout Int) {
            while offset < file.count, file[offset] > 0 { offset += 1 + Int(file[offset]) }
            offset += 1
        }
        var offset = 13 + table(file[10])
        var ends: [Int] = []
        while offset < file.count {
            switch file[offset] {
            case 0x21:
                offset += 2
                skip(&offset)
            case 0x2C:
                offset += 11 + table(file[offset + 9])
                skip(&offset)
                ends.append(offset)
            default: return ends
            }
        }
        return ends
    }
}
