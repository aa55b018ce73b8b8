import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

/// The largest numbers that headers can have, in all code that reads headers without a decoder: nothing traps, and
/// nothing takes long.
@Suite(.timeLimit(.minutes(15)))
struct ExtremeHeaderTests {
    private static let allowing = ImageLimits(
        pixels: .max, frames: .max, animationPixels: .max, decoderBytes: .max, scans: .max)

    private static let policies: [MetadataPolicy] = {
        var options = VariantOptions()
        options.set(.keepMetadata, .flag(true))
        return [MetadataPolicy(VariantOptions()), MetadataPolicy(options)]
    }()

    private static func inspect(_ bytes: [UInt8], as format: ImageFormat) {
        bytes.withUnsafeBytes { bytes in
            let reader = ByteReader(bytes)
            for limits in [ImageLimits(), allowing] {
                _ = HeaderInspector(limits: limits).inspect(bytes)
                _ = DecoderCost(bytes, as: format, limits: limits).objection(limits)
                if let facts = format.definition.animation(bytes) { _ = (facts.isAnimation, facts.isWithin(limits)) }
                if format == .heic { _ = (HEIFBoxes(reader).objection(limits), HEIFBoxes(reader).largest) }
            }
            _ = (ImageFormat.sniff(bytes), ImageFormat.mayBegin(bytes), format.definition.endsEarly(reader))
            for policy in policies { _ = format.definition.hasExtras(reader, policy) }
            _ = format.definition.hidingMetadata(bytes)
            _ = (ExifBlock(bytes, where: { _ in true }), ColourProfile(bytes).isSRGB)
            inspectDetails(bytes, reader, format)
        }
    }

    private static func inspectDetails(
        _ bytes: UnsafeRawBufferPointer, _ reader: ByteReader, _ format: ImageFormat,
    ) {
        switch format {
        case .jpeg: _ = (JPEGScans.end(reader), ProgressiveJPEG(bytes))
        case .png:
            _ = (PNGTexts.excess(reader), PatchedBytes(mendingPNG: bytes))
            _ = PatchedBytes(unlacing: bytes, maxBytes: 1 << 20)
        case .tiff: _ = (TIFFColours(TIFFDirectory(reader)), TIFFDeflate(reader)?.objection)
        case .heic, .avif: _ = HEIFReferences(reader)
        case .webp: _ = (WebPChunk.all(in: bytes).map(\.hasAlpha), PatchedBytes(endingEarly: bytes))
        case .bmp: _ = (try? BMPHeader(reader))?.wholeRows(of: .max)
        case .gif: _ = (PatchedBytes(singlePixelOf: bytes), PatchedBytes(growingScreenOf: bytes))
        case .jxl: _ = JXLHeader.size(reader)
        case .qoi: _ = QOIHeader(reader)?.mayBeWhole(.max)
        }
    }

    private static let extremes: [(format: ImageFormat, bytes: [UInt8])] = {
        let png = { (side: Int) in
            TestImages.pngHeaderOnly(side, side) + TestImages.pngChunk("IDAT", [0x78, 1, 1, 0, 0])
        }
        let interlaced = { (side: Int, depth: UInt8) in
            Array(TestImages.pngHeaderOnly(side, side)[..<24]) + [depth, 6, 0, 0, 1, 0, 0, 0, 0]
                + TestImages.pngChunk("IDAT", [0x78, 1, 1, 0, 0])
        }
        let frame: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 255] + (0..<255).flatMap { [UInt8($0), 0xFF, 0] }
        let jpeg: [UInt8] =
            [0xFF, 0xD8, 0xFF, 0xC2] + TestImages.big(8 + 765, 2) + [8] + frame
            + [0xFF, 0xDA, 0, 8, 255, 1, 0, 0, 63, 0, 1, 2, 3]
        return [0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF].flatMap { side in
            [(.png, png(side)), (.png, interlaced(side, 16)), (.png, interlaced(side, 1))]
        } + [(.jpeg, jpeg)] + animations + tiffs + boxes + bitmaps
    }()

    private static let animations: [(format: ImageFormat, bytes: [UInt8])] = {
        let most: [UInt8] = [0xFF, 0xFF]
        let control: [UInt8] = [0x21, 0xF9, 4, 0xFF, 0xFF, 0xFF, 0xFF, 0]
        let image: [UInt8] = [0x2C] + most + most + most + most + [0, 8, 1, 0, 0]
        let gif =
            Array("GIF89a".utf8) + most + most + [0, 0, 0, 0x21, 0xFF, 11] + Array("NETSCAPE2.0".utf8)
            + [3, 1, 0xFF, 0xFF, 0] + (0..<2_000).flatMap { _ in control + image } + [0x3B]
        let full = [UInt8](repeating: 0xFF, count: 16)
        func chunk(_ name: String, _ length: Int, _ content: [UInt8]) -> [UInt8] {
            Array(name.utf8) + TestImages.little(length, 4) + content
        }
        func webp(_ chunks: [UInt8]) -> [UInt8] {
            Array("RIFF".utf8) + [0xFF, 0xFF, 0xFF, 0xFF] + Array("WEBP".utf8) + chunks
        }
        let frames = (0..<2_000).flatMap { _ in chunk("ANMF", 24, full + chunk("VP8L", 0, [])) }
        return [
            (.gif, gif),
            (.webp, webp(chunk("VP8X", 10, Array(full.prefix(10))) + chunk("ANIM", 6, Array(full.prefix(6))) + frames)),
            (.webp, webp(chunk("VP8X", 10, Array(full.prefix(10))) + chunk("ANMF", 0xFFFF_FFFF, full))),
            (.webp, webp(chunk("VP8L", 0xFFFF_FFFF, [0x2F] + full))),
            (.webp, webp(chunk("VP8 ", 0xFFFF_FFFF, [0, 0, 0, 0x9D, 0x01, 0x2A] + full))),
        ]
    }()

    private static let largest: [UInt64] = [.max, .max / 2, .max / 2 + 1, .max - 19, 1 << 40, 0xFFFF_FFFF]

    private static let tiffs: [(format: ImageFormat, bytes: [UInt8])] = {
        typealias Numbers = TestImages.BigTIFFNumbers
        let tags = [256, 257, 258, 273, 277, 278, 279]
        var list: [(format: ImageFormat, bytes: [UInt8])] = []
        for number in largest {
            var all = [Numbers(directory: number), Numbers(entries: number)]
            for tag in tags { all += [Numbers(counts: [tag: number]), Numbers(values: [tag: number])] }
            all.append(Numbers(counts: [273: number, 279: number], values: [273: number, 279: number]))
            // Lists of billions, of a picture that has as many strips.
            let counts: [Int: UInt64] = [273: 0x7FFF_FFFF, 279: 0x7FFF_FFFF]
            all.append(Numbers(counts: counts, values: [273: 8, 279: 8]))
            let sides: [Int: UInt64] = [256: 10_000_000, 257: 10_000_000, 277: 256, 278: 1]
            all.append(Numbers(counts: counts, values: sides.merging([273: 8, 279: 8]) { $1 }))
            for isBig in [false, true] {
                for numbers in all {
                    for compression in [1, 8] {
                        let file = TestImages.bigTIFF(
                            4, 4, bigEndian: isBig, compression: compression, numbers: numbers)
                        list.append((.tiff, file))
                    }
                }
                let value = Int(truncatingIfNeeded: number & 0xFFFF_FFFF)
                let classic = TestImages.tiff(
                    4, 4, samples: [UInt8](repeating: 0, count: 48), channels: 3, photometric: 2, bigEndian: isBig,
                    tags: tags.map { (tag: $0, type: 4, values: [value]) })
                list.append((.tiff, classic))
            }
        }
        return list
    }()

    private static let boxes: [(format: ImageFormat, bytes: [UInt8])] = {
        func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
            TestImages.big(content.count + 8, 4) + Array(name.utf8) + content
        }
        let ftyp = box("ftyp", Array("heic".utf8) + [0, 0, 0, 0] + Array("mif1heic".utf8))
        let full: [UInt8] = [0, 0, 0, 0]
        let most = [UInt8](repeating: 0xFF, count: 8)
        let names = full + [0, 1] + box("infe", [2, 0, 0, 0, 0, 1, 0, 0] + Array("grid".utf8) + [0])
        func file(_ places: [UInt8], grid: [UInt8] = [0, 1, 255, 255] + most) -> [UInt8] {
            let sizes = box("ispe", full + most) + box("pixi", full + [255] + most)
            return ftyp
                + box(
                    "meta",
                    full + box("iinf", names) + box("iloc", places) + box("idat", grid)
                        + box("iprp", box("ipco", sizes)))
        }
        let wide: [UInt8] = [1, 0, 0, 0, 0x88, 0x88, 0, 1, 0, 1, 0, 1, 0, 0]
        let half: [UInt8] = [0x7F] + most.dropFirst()
        // Places of numbers without any bytes, as many as can be counted.
        let empty = (0..<4_000).flatMap { _ -> [UInt8] in [0, 1, 0, 1, 0, 0, 0xFF, 0xFF] }
        let large = { (name: String, size: [UInt8]) in [0, 0, 0, 1] + Array(name.utf8) + size + [0, 0, 0, 0] }
        let jxl = { (bits: [UInt8]) in [0xFF, 0x0A] + bits }
        return [
            (.heic, file(wide + half + [0, 1] + most + half + half)),
            (.heic, file(wide + half + [0, 1] + half + half + half)),
            (.heic, file([1, 0, 0, 0, 0x44, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 12])),
            (.heic, file([1, 0, 0, 0, 0x00, 0, 0x0F, 0xA0] + empty)),
            (.heic, ftyp + large("meta", most)), (.heic, ftyp + large("meta", half)),
            (.avif, ftyp + large("mdat", half)),
            (.jxl, jxl(most + most)), (.jxl, jxl([0xFE] + most + most)), (.jxl, jxl([0b0000_0110] + most + most)),
        ]
    }()

    private static let bitmaps: [(format: ImageFormat, bytes: [UInt8])] = {
        var list: [(format: ImageFormat, bytes: [UInt8])] = []
        for start in [10, 18, 22, 28, 30, 34, 46] {
            for number in [0xFFFF_FFFF, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001] {
                var bytes = TestImages.bmp(4, 4)
                bytes.replaceSubrange(start..<(start + 4), with: TestImages.little(number, 4))
                list.append((.bmp, bytes))
                bytes.replaceSubrange(18..<26, with: [0xFF, 0xFF, 0xFF, 0x7F, 0, 0, 0, 0x80])
                list.append((.bmp, bytes))
            }
        }
        return list
    }()

    @Test func headersWithTheLargestNumbersNeverTrap() {
        for (format, bytes) in Self.extremes {
            for length in [bytes.count, bytes.count - 1, bytes.count / 2] {
                Self.inspect(Array(bytes.prefix(length)), as: format)
            }
            // Where a decoder is asked as well, the limits come first.
            let end = failure { _ = try make(bytes, "v=4x,png", tolerance: DecodeTolerance(acceptsDamage: true)) }
            // Of a TIFF or BMP, one number more than there is may change nothing.
            #expect(end != nil || format == .tiff || format == .bmp, "\(format): \(bytes.prefix(40))")
        }
    }

    /// Every number of a file, at every place and of every width.
    @Test func smallFilesWithAnyNumberAtItsMaximumNeverTrap() {
        let patterns: [[UInt8]] = [[0xFF], [0x7F, 0xFF], [0xFF, 0x7F], [0x80, 0], [0, 0x80]]
        var seeds = ImageFormat.allCases.map { ($0, SampleImage.bytes(of: $0)) }
        seeds += [false, true].map { (.tiff, TestImages.bigTIFF(3, 3, bigEndian: $0)) }
        for (format, seed) in seeds {
            for offset in 0..<min(seed.count, 600) {
                for width in [1, 2, 4, 8] {
                    for pattern in patterns {
                        var bytes = seed
                        // The first byte, the last, and the same between.
                        let fill = pattern.count == 1 ? 0xFF : pattern.contains(0x80) ? 0 : UInt8(0xFF)
                        for index in 0..<width where offset + index < seed.count { bytes[offset + index] = fill }
                        bytes[offset] = pattern[0]
                        if offset + width <= seed.count { bytes[offset + width - 1] = pattern[pattern.count - 1] }
                        Self.inspect(bytes, as: format)
                    }
                }
            }
        }
    }
}
