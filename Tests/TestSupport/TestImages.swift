/// Images made by hand, byte by byte, so that tests of decoders do not lean on the encoders beside them.
public enum TestImages {
    /// One pixel's red, green, blue and alpha, 0 to 255.
    public typealias Pixel = (red: UInt8, green: UInt8, blue: UInt8, alpha: UInt8)

    /// A picture whose corners differ: red to the right, green downwards, and a white square at the top left.
    public static func gradient(_ width: Int, _ height: Int) -> (Int, Int) -> Pixel {
        { x, y in
            if x < width / 4, y < height / 4 { return (255, 255, 255, 255) }
            let red = UInt8(x * 200 / max(1, width - 1))
            return (red, UInt8(y * 200 / max(1, height - 1)), 60, 255)
        }
    }

    public static func solid(_ pixel: Pixel) -> (Int, Int) -> Pixel {
        { _, _ in pixel }
    }
}

// MARK: - PNG

extension TestImages {
    /// PNG's colour types, and what a sample of each is made from.
    public enum PNGKind: CaseIterable, Sendable {
        case grey, greyAlpha, rgb, rgba, rgba16, indexedWithAlpha

        var colourType: UInt8 {
            switch self {
            case .grey: 0
            case .rgb: 2
            case .indexedWithAlpha: 3
            case .greyAlpha: 4
            case .rgba, .rgba16: 6
            }
        }

        var depth: UInt8 { self == .rgba16 ? 16 : 8 }

        func samples(_ pixel: Pixel) -> [UInt8] {
            switch self {
            case .grey: [pixel.red]
            case .greyAlpha: [pixel.red, pixel.alpha]
            case .rgb: [pixel.red, pixel.green, pixel.blue]
            case .rgba: [pixel.red, pixel.green, pixel.blue, pixel.alpha]
            case .rgba16: [pixel.red, pixel.green, pixel.blue, pixel.alpha].flatMap { [$0, $0] }
            // The palette has 256 entries that are grey by their number, the first half transparent.
            case .indexedWithAlpha: [pixel.red]
            }
        }
    }

    /// A PNG of any size and colour type, its pixels stored and not compressed.
    public static func png(
        _ width: Int, _ height: Int, kind: PNGKind = .rgb, extra: [[UInt8]] = [],
        pixel: ((Int, Int) -> Pixel)? = nil,
    ) -> [UInt8] {
        let pixel = pixel ?? gradient(width, height)
        var raw: [UInt8] = []
        for y in 0..<height {
            raw.append(0)  // filter: none
            for x in 0..<width { raw += kind.samples(pixel(x, y)) }
        }
        var file = pngSignature + pngHeader(width, height, kind)
        for chunk in extra { file += chunk }
        if kind == .indexedWithAlpha {
            file += pngChunk("PLTE", (0..<256).flatMap { [UInt8($0), UInt8($0), UInt8($0)] })
            file += pngChunk("tRNS", [UInt8](repeating: 0, count: 128))
        }
        return file + pngChunk("IDAT", zlibStored(raw)) + pngChunk("IEND", [])
    }

    /// Signature and header only, of any claimed size.
    public static func pngHeaderOnly(_ width: Int, _ height: Int) -> [UInt8] {
        pngSignature + pngHeader(width, height, .rgb)
    }

    /// A profile chunk; PNG compresses it.
    public static func pngProfileChunk(_ profile: [UInt8]) -> [UInt8] {
        pngChunk("iCCP", Array("test".utf8) + [0, 0] + zlibStored(profile))
    }

    public static func pngChunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
        let body = Array(name.utf8) + data
        return big(data.count, 4) + body + big(Int(crc32(body)), 4)
    }

    private static let pngSignature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    private static func pngHeader(_ width: Int, _ height: Int, _ kind: PNGKind) -> [UInt8] {
        pngChunk("IHDR", big(width, 4) + big(height, 4) + [kind.depth, kind.colourType, 0, 0, 0])
    }
}

// MARK: - Numbers and checksums

extension TestImages {
    public static func big(_ value: Int, _ bytes: Int) -> [UInt8] {
        (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    public static func little(_ value: Int, _ bytes: Int) -> [UInt8] {
        big(value, bytes).reversed()
    }

    /// RFC 1950 and 1951: deflate's stored blocks, of at most 65,535 bytes.
    public static func zlibStored(_ data: [UInt8]) -> [UInt8] {
        var result: [UInt8] = [0x78, 0x01]
        var start = 0
        repeat {
            let end = min(start + 65_535, data.count)
            let length = end - start
            result += [end == data.count ? 1 : 0] + little(length, 2) + little(~length, 2) + data[start..<end]
            start = end
        } while start < data.count
        return result + big(Int(adler32(data)), 4)
    }

    private static func adler32(_ data: [UInt8]) -> UInt32 {
        var a: UInt32 = 1
        var b: UInt32 = 0
        for byte in data {
            a = (a + UInt32(byte)) % 65_521
            b = (b + a) % 65_521
        }
        return b << 16 | a
    }

    private static let crcTable: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
    }

    private static func crc32(_ data: [UInt8]) -> UInt32 {
        ~data.reduce(~UInt32(0)) { crcTable[Int(($0 ^ UInt32($1)) & 0xFF)] ^ ($0 >> 8) }
    }
}
