// Other containers: GIF, TIFF, and what is spliced into a JPEG.

extension TestImages {
    /// A GIF of solid frames, one grey level each. Codes are nine bits wide, and the table is cleared before it grows.
    public static func gif(_ width: Int, _ height: Int, frames levels: [UInt8] = [200]) -> [UInt8] {
        var file = Array("GIF89a".utf8) + little(width, 2) + little(height, 2) + [0xF7, 0, 0]
        file += (0..<256).flatMap { [UInt8($0), UInt8($0), UInt8($0)] }
        for level in levels {
            file += [0x21, 0xF9, 4, 0, 10, 0, 0, 0]
            file += [0x2C, 0, 0, 0, 0] + little(width, 2) + little(height, 2) + [0, 8]
            file += subBlocks(gifCodes([UInt8](repeating: level, count: width * height)))
        }
        return file + [0x3B]
    }

    private static func gifCodes(_ pixels: [UInt8]) -> [UInt8] {
        let clear = 256
        var codes: [Int] = []
        for (index, pixel) in pixels.enumerated() {
            if index % 250 == 0 { codes.append(clear) }
            codes.append(Int(pixel))
        }
        codes.append(257)
        var bytes: [UInt8] = []
        var bits = 0
        var held = 0
        for code in codes {
            bits |= code << held
            held += 9
            while held >= 8 {
                bytes.append(UInt8(bits & 0xFF))
                bits >>= 8
                held -= 8
            }
        }
        if held > 0 { bytes.append(UInt8(bits & 0xFF)) }
        return bytes
    }

    static func subBlocks(_ data: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        for start in stride(from: 0, to: data.count, by: 255) {
            let part = data[start..<min(start + 255, data.count)]
            result += [UInt8(part.count)] + part
        }
        return result + [0]
    }

    /// What a TIFF's samples mean.
    public enum TIFFKind: Sendable {
        case rgb, cmyk

        var photometric: Int { self == .rgb ? 2 : 5 }
        var channels: Int { self == .rgb ? 3 : 4 }
    }

    /// An uncompressed TIFF of one strip, in either byte order. CMYK puts red, green, blue and alpha into its channels.
    public static func tiff(
        _ width: Int, _ height: Int, kind: TIFFKind = .rgb, bigEndian: Bool = false,
        pixel: ((Int, Int) -> Pixel)? = nil,
    ) -> [UInt8] {
        let pixel = pixel ?? gradient(width, height)
        var samples: [UInt8] = []
        for y in 0..<height {
            for x in 0..<width {
                let it = pixel(x, y)
                samples += [it.red, it.green, it.blue, it.alpha].prefix(kind.channels)
            }
        }
        return tiff(
            width, height, samples: samples, channels: kind.channels, photometric: kind.photometric,
            bigEndian: bigEndian)
    }

    /// An uncompressed TIFF of one strip of samples of any kind.
    ///
    /// - Parameters:
    ///   - samples: in the file's byte order.
    ///   - format: 1 whole numbers, 2 signed ones, 3 fractions, 6 complex ones.
    ///   - photometric: what the samples mean by TIFF 6.0: 1 grey, 2 RGB, 5 CMYK, 6 YCbCr, 8 CIELAB.
    ///   - tags: others, or other values; none at all takes a tag out. Of type 3, 4, or 5, which has two numbers a value.
    public static func tiff(
        _ width: Int, _ height: Int, samples: [UInt8], channels: Int, bits: Int = 8, format: Int = 1, photometric: Int,
        profile: [UInt8] = [], bigEndian: Bool = false, tags: [(tag: Int, type: Int, values: [Int])] = [],
    ) -> [UInt8] {
        let number: (Int, Int) -> [UInt8] = { bigEndian ? big($0, $1) : little($0, $1) }
        let depths = 8 + samples.count
        let formats = depths + 2 * 4
        let colours = formats + 2 * 4
        let others = colours + profile.count + profile.count % 2
        func entry(_ tag: Int, _ type: Int, _ values: [Int], at place: Int = 0) -> [UInt8] {
            let size = type == 3 ? 2 : 4
            let inline = values.flatMap { number($0, size) }
            let field = inline.count > 4 ? number(place, 4) : inline + [UInt8](repeating: 0, count: 4 - inline.count)
            return number(tag, 2) + number(type, 2) + number(type == 5 ? values.count / 2 : values.count, 4) + field
        }
        var entries = [
            entry(256, 4, [width]), entry(257, 4, [height]),
            entry(258, 3, Array(repeating: bits, count: channels), at: depths),
            entry(259, 3, [1]), entry(262, 3, [photometric]), entry(273, 4, [8]), entry(277, 3, [channels]),
            entry(278, 4, [height]), entry(279, 4, [samples.count]), entry(284, 3, [1]),
        ]
        // Whether the last channel is an alpha, which is not multiplied with the colours.
        if channels == 2 || channels == 4 && photometric == 2 { entries.append(entry(338, 3, [2])) }
        entries.append(entry(339, 3, Array(repeating: format, count: channels), at: formats))
        if !profile.isEmpty {
            entries.append(number(34_675, 2) + number(7, 2) + number(profile.count, 4) + number(colours, 4))
        }
        var more: [UInt8] = []
        for (tag, type, values) in tags {
            entries.removeAll { $0.starts(with: number(tag, 2)) }
            guard !values.isEmpty else { continue }
            entries.append(entry(tag, type, values, at: others + more.count))
            more += values.flatMap { number($0, type == 3 ? 2 : 4) }
        }
        let directory = others + more.count
        let place: ([UInt8]) -> Int = { Int($0[bigEndian ? 0 : 1]) << 8 | Int($0[bigEndian ? 1 : 0]) }
        entries.sort { place($0) < place($1) }
        let start = bigEndian ? Array("MM".utf8) : Array("II".utf8)
        let lists = [bits, format].flatMap { value in (0..<4).flatMap { _ in number(value, 2) } }
        let padding = [UInt8](repeating: 0, count: profile.count % 2)
        let table = number(entries.count, 2) + entries.flatMap { $0 } + number(0, 4)
        return start + number(42, 2) + number(directory, 4) + samples + lists + profile + padding + more + table
    }
}

extension TestImages {
    /// The JPEG with an EXIF segment that holds an orientation and nothing else, after its first two bytes.
    public static func jpeg(_ jpeg: [UInt8], orientation: Int) -> [UInt8] {
        let exif =
            Array("Exif".utf8) + [0, 0] + Array("II".utf8) + little(42, 2) + little(8, 4)
            + little(1, 2) + little(0x0112, 2) + little(3, 2) + little(1, 4) + little(orientation, 4) + little(0, 4)
        return insert(segment: 0xE1, exif, into: jpeg)
    }

    /// The JPEG with an embedded colour profile.
    public static func jpeg(_ jpeg: [UInt8], profile: [UInt8]) -> [UInt8] {
        insert(segment: 0xE2, Array("ICC_PROFILE".utf8) + [0, 1, 1] + profile, into: jpeg)
    }

    private static func insert(segment marker: UInt8, _ payload: [UInt8], into jpeg: [UInt8]) -> [UInt8] {
        Array(jpeg.prefix(2)) + [0xFF, marker] + big(payload.count + 2, 2) + payload + jpeg.dropFirst(2)
    }

    /// A profile of a matrix and one curve for all channels: ICC.1:2001 in the fewest tags that are legal.
    ///
    /// - Parameters:
    ///   - primaries: X, Y and Z of red, green and blue, adapted to D50.
    ///   - curve: from what is stored to light, both 0 to 1; kept as a table of 1,024.
    public static func profile(primaries: [[Double]], curve: (Double) -> Double) -> [UInt8] {
        let fixed: (Double) -> [UInt8] = { big(Int(($0 * 65_536).rounded()), 4) }
        let xyz: ([Double]) -> [UInt8] = { Array("XYZ ".utf8) + big(0, 4) + $0.flatMap(fixed) }
        let points = (0..<1024).flatMap { big(Int((curve(Double($0) / 1023) * 65_535).rounded()), 2) }
        let curve = Array("curv".utf8) + big(0, 4) + big(1024, 4) + points
        let text = Array("desc".utf8) + big(0, 4) + big(5, 4) + Array("test".utf8) + [UInt8](repeating: 0, count: 79)
        let rights = Array("text".utf8) + big(0, 4) + Array("none".utf8) + [0, 0, 0, 0]
        let tags: [(String, [UInt8])] = [
            ("desc", text), ("cprt", rights), ("wtpt", xyz([0.9642, 1, 0.8249])),
            ("rXYZ", xyz(primaries[0])), ("gXYZ", xyz(primaries[1])), ("bXYZ", xyz(primaries[2])),
            ("rTRC", curve), ("gTRC", curve), ("bTRC", curve),
        ]
        var table = big(tags.count, 4)
        var data: [UInt8] = []
        for (name, bytes) in tags {
            table += Array(name.utf8) + big(128 + 4 + 12 * tags.count + data.count, 4) + big(bytes.count, 4)
            data += bytes + [UInt8](repeating: 0, count: (4 - bytes.count % 4) % 4)
        }
        var header = big(128 + table.count + data.count, 4) + big(0, 4) + big(0x0210_0000, 4)
        header += Array("mntrRGB XYZ ".utf8) + [UInt8](repeating: 0, count: 12) + Array("acsp".utf8)
        header += [UInt8](repeating: 0, count: 28) + [0.9642, 1, 0.8249].flatMap(fixed)
        header += [UInt8](repeating: 0, count: 128 - header.count)
        return header + table + data
    }
}

extension TestImages {
    /// A BMP of 24 bits a pixel, from the bottom; `width` is a multiple of four, so that lines need no padding.
    public static func bmp(_ width: Int, _ height: Int) -> [UInt8] {
        var file: [UInt8] = Array("BM".utf8)
        for (number, bytes) in [
            (54 + width * height * 3, 4), (0, 4), (54, 4), (40, 4), (width, 4), (height, 4), (1, 2), (24, 2),
        ] {
            file += little(number, bytes)
        }
        file += [UInt8](repeating: 0, count: 24)
        for y in 0..<height {
            for x in 0..<width { file += [x * 11, y * 13, x * y].map { UInt8($0 & 255) } }
        }
        return file
    }
}

extension TestImages {
    /// A TIFF whose one strip is a whole JPEG of three components, none of them halved (TIFF technical note 2).
    public static func tiff(of jpeg: [UInt8], _ width: Int, _ height: Int) -> [UInt8] {
        let bits = jpeg + [UInt8](repeating: 0, count: jpeg.count & 1)
        let directory = 8 + bits.count + 6
        func entry(_ tag: Int, _ type: Int, _ count: Int, _ value: Int) -> [UInt8] {
            little(tag, 2) + little(type, 2) + little(count, 4) + little(value, 4)
        }
        var file: [UInt8] = Array("II".utf8) + little(42, 2) + little(directory, 4) + bits
        for _ in 0..<3 { file += little(8, 2) }
        file += little(10, 2)
        file += entry(256, 3, 1, width) + entry(257, 3, 1, height) + entry(258, 3, 3, directory - 6)
        file += entry(259, 3, 1, 7) + entry(262, 3, 1, 6) + entry(273, 4, 1, 8) + entry(277, 3, 1, 3)
        file += entry(278, 3, 1, height) + entry(279, 4, 1, jpeg.count) + entry(530, 3, 2, 1 | 1 << 16)
        return file + little(0, 4)
    }
}
