// TIFF with numbers of 64 bits.

extension TestImages {
    /// A number of 64 bits where there is one, and another than a right file would have.
    public struct BigTIFFNumbers: Sendable {
        public var directory: UInt64?
        public var entries: UInt64?
        /// Of the values of a tag, and where they are.
        public var counts: [Int: UInt64] = [:]
        public var values: [Int: UInt64] = [:]

        public init(
            directory: UInt64? = nil, entries: UInt64? = nil, counts: [Int: UInt64] = [:], values: [Int: UInt64] = [:],
        ) {
            self.directory = directory
            self.entries = entries
            self.counts = counts
            self.values = values
        }
    }

    /// A BigTIFF of one strip that isn't compressed, or is said to be, in either byte order.
    /// https://www.awaresystems.be/imaging/tiff/bigtiff.html
    public static func bigTIFF(
        _ width: Int, _ height: Int, bigEndian: Bool = false, compression: Int = 1,
        numbers: BigTIFFNumbers = BigTIFFNumbers(), pixel: ((Int, Int) -> Pixel)? = nil,
    ) -> [UInt8] {
        let pixel = pixel ?? gradient(width, height)
        var samples: [UInt8] = []
        for y in 0..<height {
            for x in 0..<width { samples += [pixel(x, y).red, pixel(x, y).green, pixel(x, y).blue] }
        }
        func number(_ value: UInt64, _ length: Int) -> [UInt8] {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * $0)) }
            return bigEndian ? bytes.reversed() : bytes
        }
        // Three of sixteen bits fit into a value, from its first byte on.
        let depths: [UInt8] = number(8, 2) + number(8, 2) + number(8, 2) + [0, 0]
        func entry(_ tag: Int, _ type: Int, _ value: [UInt8], count: UInt64 = 1) -> [UInt8] {
            let value = numbers.values[tag].map { number($0, 8) } ?? value
            return number(UInt64(tag), 2) + number(UInt64(type), 2) + number(numbers.counts[tag] ?? count, 8) + value
        }
        func long(_ tag: Int, _ value: Int) -> [UInt8] { entry(tag, 16, number(UInt64(value), 8)) }
        func short(_ tag: Int, _ value: Int) -> [UInt8] {
            entry(tag, 3, number(UInt64(value), 2) + [UInt8](repeating: 0, count: 6))
        }
        let entries = [
            long(256, width), long(257, height), entry(258, 3, depths, count: 3), short(259, compression),
            short(262, 2), long(273, 16), short(277, 3), long(278, height), long(279, samples.count),
        ]
        let start = bigEndian ? Array("MM".utf8) : Array("II".utf8)
        let directory = numbers.directory ?? UInt64(16 + samples.count)
        let header = start + number(43, 2) + number(8, 2) + number(0, 2) + number(directory, 8)
        let table = number(numbers.entries ?? UInt64(entries.count), 8) + entries.flatMap { $0 } + number(0, 8)
        return header + samples + table
    }
}
