/// A PNG decoder of the tests' own, by the specification and nothing else: every colour type and depth, interlaced or
/// not, checksums unread. https://www.w3.org/TR/png-3/
struct PlainPNG {
    private(set) var width = 0
    private(set) var height = 0
    /// Red, green, blue and alpha, 16 bits each: samples of fewer bits are repeated into the lower ones.
    private(set) var pixels: [UInt16] = []

    private var depth = 0
    private var type = 0
    private var palette: [UInt8] = []
    private var transparency: [UInt8] = []

    /// Nil for what it can't make sense of.
    init?(_ file: [UInt8]) {
        var offset = 8
        var data: [UInt8] = []
        var isInterlaced = false
        while offset + 12 <= file.count {
            let length = Self.number(file[offset..<(offset + 4)])
            guard offset + 12 + length <= file.count else { return nil }
            let body = Array(file[(offset + 8)..<(offset + 8 + length)])
            switch String(decoding: file[(offset + 4)..<(offset + 8)], as: UTF8.self) {
            case "IHDR":
                (width, height) = (Self.number(body[0..<4]), Self.number(body[4..<8]))
                (depth, type, isInterlaced) = (Int(body[8]), Int(body[9]), body[12] == 1)
            case "PLTE": palette = body
            case "tRNS": transparency = body
            case "IDAT": data += body
            default: break
            }
            offset += 12 + length
        }
        guard width > 0, height > 0, let raw = Inflater.inflate(data.dropFirst(2)) else { return nil }
        pixels = [UInt16](repeating: 0, count: width * height * 4)
        var start = 0
        for pass in isInterlaced ? Self.passes : [(0, 0, 1, 1)] { draw(pass, raw, &start) }
    }

    private static let passes = [
        (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2),
    ]

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

    private var channels: Int { [0: 1, 2: 3, 3: 1, 4: 2, 6: 4][type] ?? 1 }

    private mutating func draw(
        _ pass: (left: Int, top: Int, across: Int, down: Int), _ raw: [UInt8], _ start: inout Int
    ) {
        let columns = (width - pass.left + pass.across - 1) / pass.across
        let rows = (height - pass.top + pass.down - 1) / pass.down
        guard columns > 0, rows > 0 else { return }
        let length = (columns * channels * depth + 7) / 8
        var above = [UInt8](repeating: 0, count: length)
        for row in 0..<rows {
            guard start + length < raw.count else { return }
            above = unfiltered(Array(raw[(start + 1)...(start + length)]), by: raw[start], above)
            for column in 0..<columns {
                let place = ((pass.top + row * pass.down) * width + pass.left + column * pass.across) * 4
                pixels.replaceSubrange(place..<(place + 4), with: colour(column, above))
            }
            start += length + 1
        }
    }

    private func unfiltered(_ row: [UInt8], by filter: UInt8, _ above: [UInt8]) -> [UInt8] {
        let step = max(1, channels * depth / 8)
        var row = row
        for index in row.indices {
            let left = index >= step ? Int(row[index - step]) : 0
            let corner = index >= step ? Int(above[index - step]) : 0
            let up = Int(above[index])
            let guess = left + up - corner
            let distances = (abs(guess - left), abs(guess - up), abs(guess - corner))
            let paeth =
                distances.0 <= distances.1 && distances.0 <= distances.2
                ? left : distances.1 <= distances.2 ? up : corner
            row[index] &+= UInt8([0, left, up, (left + up) / 2, paeth][Int(filter)])
        }
        return row
    }

    private func sample(_ index: Int, _ row: [UInt8]) -> Int {
        if depth == 16 { return Int(row[index * 2]) << 8 | Int(row[index * 2 + 1]) }
        let bit = index * depth
        return Int(row[bit / 8]) >> (8 - depth - bit % 8) & (1 << depth - 1)
    }

    private func colour(_ column: Int, _ row: [UInt8]) -> [UInt16] {
        let samples = (0..<channels).map { sample(column * channels + $0, row) }
        if type == 3 {
            let entry = samples[0]
            let alpha = entry < transparency.count ? transparency[entry] : 255
            return (palette[(entry * 3)..<(entry * 3 + 3)] + [alpha]).map { UInt16($0) * 257 }
        }
        let wide = samples.map { UInt16($0 * 65_535 / (1 << depth - 1)) }
        let grey = type & 2 == 0
        let key = stride(from: 0, to: transparency.count - 1, by: 2).map { Self.number(transparency[$0..<($0 + 2)]) }
        let alpha = type & 4 != 0 ? wide[wide.count - 1] : !key.isEmpty && key == samples ? 0 : 65_535
        return (grey ? [wide[0], wide[0], wide[0]] : Array(wide[0..<3])) + [alpha]
    }
}

/// RFC 1951, the slow and plain way.
private struct Inflater {
    private let data: [UInt8]
    private var bit = 0
    private var output: [UInt8] = []

    static func inflate(_ data: ArraySlice<UInt8>) -> [UInt8]? {
        var inflater = Inflater(data: Array(data))
        return inflater.run() ? inflater.output : nil
    }

    private init(data: [UInt8]) { self.data = data }

    private mutating func bits(_ count: Int) -> Int {
        var value = 0
        for place in 0..<count {
            guard bit / 8 < data.count else { return value }
            value |= Int(data[bit / 8] >> (bit % 8) & 1) << place
            bit += 1
        }
        return value
    }

    private mutating func run() -> Bool {
        var isLast = false
        while !isLast, bit / 8 < data.count {
            isLast = bits(1) == 1
            switch bits(2) {
            case 0: stored()
            case 1:
                let lengths = (0..<288).map { $0 < 144 ? 8 : $0 < 256 ? 9 : $0 < 280 ? 7 : 8 }
                guard coded(Codes(lengths), Codes([Int](repeating: 5, count: 30))) else { return false }
            case 2: guard dynamic() else { return false }
            default: return false
            }
        }
        return isLast
    }

    private mutating func stored() {
        bit = (bit + 7) / 8 * 8
        let length = bits(16)
        bit += 16
        output += data[min(bit / 8, data.count)..<min(bit / 8 + length, data.count)]
        bit += length * 8
    }

    private mutating func dynamic() -> Bool {
        let (literals, distances, count) = (bits(5) + 257, bits(5) + 1, bits(4) + 4)
        var lengths = [Int](repeating: 0, count: 19)
        for place in [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15].prefix(count) {
            lengths[place] = bits(3)
        }
        let codes = Codes(lengths)
        var all: [Int] = []
        while all.count < literals + distances {
            guard let symbol = symbol(codes) else { return false }
            switch symbol {
            case 16: all += [Int](repeating: all.last ?? 0, count: 3 + bits(2))
            case 17: all += [Int](repeating: 0, count: 3 + bits(3))
            case 18: all += [Int](repeating: 0, count: 11 + bits(7))
            default: all.append(symbol)
            }
        }
        return coded(Codes(Array(all[..<literals])), Codes(Array(all[literals...])))
    }

    private mutating func coded(_ literals: Codes, _ distances: Codes) -> Bool {
        while let symbol = symbol(literals) {
            if symbol == 256 { return true }
            if symbol < 256 {
                output.append(UInt8(symbol))
                continue
            }
            let length = length(symbol - 257)
            guard let code = self.symbol(distances) else { return false }
            let distance = code < 2 ? code + 1 : (2 + code % 2) << (code / 2 - 1) + 1 + bits(code / 2 - 1)
            guard distance <= output.count else { return false }
            for _ in 0..<length { output.append(output[output.count - distance]) }
        }
        return false
    }

    private mutating func length(_ code: Int) -> Int {
        if code < 8 { return code + 3 }
        if code == 28 { return 258 }
        let extra = code / 4 - 1
        return (4 + code % 4) << extra + 3 + bits(extra)
    }

    private mutating func symbol(_ codes: Codes) -> Int? {
        var code = 0
        for length in 1...15 {
            guard bit / 8 < data.count else { return nil }
            code = code << 1 | bits(1)
            if let symbol = codes.symbols[length << 16 | code] { return symbol }
        }
        return nil
    }

    /// Symbols by the length and value of their codes.
    struct Codes {
        private(set) var symbols: [Int: Int] = [:]

        init(_ lengths: [Int]) {
            var code = 0
            for length in 1...15 {
                for (symbol, its) in lengths.enumerated() where its == length {
                    symbols[length << 16 | code] = symbol
                    code += 1
                }
                code <<= 1
            }
        }
    }
}
