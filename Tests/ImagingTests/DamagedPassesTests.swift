import Core
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// A truncated interlaced PNG as a browser would show it: the pixels of the received passes fill the places of the
/// missing ones.
@Suite(.timeLimit(.minutes(15)))
struct DamagedPassesTests {
    private static let accepting = DecodeTolerance(acceptsDamage: true)

    /// All colour types and depths: those that our encoder doesn't write are in the suite of PNG's own test files.
    private static let sources: [(name: String, bytes: [UInt8])] = {
        var sources: [(String, [UInt8])] = []
        for kind in TestImages.PNGKind.allCases {
            for (width, height) in [(37, 29), (64, 8), (5, 70)] {
                let whole = TestImages.png(width, height, kind: kind) { x, y in
                    (UInt8((x * 37 + y * 11) & 255), UInt8((y * 53) & 255), UInt8(x * 3), UInt8(255 - y))
                }
                let made = try? make(one: whole, "x,png,progressive")
                sources.append(("\(kind), \(width)x\(height)", made ?? []))
            }
        }
        for name in ["0g01", "0g02", "0g04", "0g16", "2c16", "3p01", "3p02", "3p04", "4a16", "6a16"] {
            for file in Corpus.files("pngsuite") where file.lastComponent?.string == "basi\(name).png" {
                sources.append((name, (try? Corpus.bytes(file)) ?? []))
            }
        }
        return sources
    }()

    /// Of each pass the pixels that are its own, by their order.
    private struct Coming {
        var picture: [[Int]?]
        private let right: Raster
        private var lines: [(pass: Int, line: Int)] = []

        private static let starts = [(0, 0), (4, 0), (0, 4), (2, 0), (0, 2), (1, 0), (0, 1)]
        private static let steps = [(8, 8), (8, 8), (4, 8), (4, 4), (2, 4), (2, 2), (1, 2)]
        private static let blocks = [(8, 8), (4, 8), (4, 4), (2, 4), (2, 2), (1, 2), (1, 1)]

        init(_ right: Raster) {
            self.right = right
            picture = Array(repeating: nil, count: right.width * right.height)
            for pass in 0..<7 where Self.starts[pass].0 < right.width {
                for line in stride(from: Self.starts[pass].1, to: right.height, by: Self.steps[pass].1) {
                    lines.append((pass, line))
                }
            }
        }

        var count: Int { lines.count }

        mutating func take(_ index: Int) {
            let (pass, line) = lines[index]
            for left in stride(from: Self.starts[pass].0, to: right.width, by: Self.steps[pass].0) {
                for y in line..<min(line + Self.blocks[pass].1, right.height) {
                    for x in left..<min(left + Self.blocks[pass].0, right.width) {
                        picture[y * right.width + x] = right[left, line]
                    }
                }
            }
        }

        /// Whether the picture is what has come until now, and nothing where nothing has. Palettes lack a colour for it.
        func isShown(in found: Raster) -> Bool {
            guard found.size == right.size, found.channels == right.channels else { return false }
            return picture.indices.allSatisfy { index in
                guard let pixel = picture[index] else { return true }
                return found[index % right.width, index / right.width] == pixel
            }
        }

        /// How many lines it shows at least; nil where it is none of what can have come.
        static func lines(of found: Raster, _ right: Raster) -> (shown: Int, of: Int)? {
            var coming = Coming(right)
            var last: Int?
            for index in 0..<coming.count {
                coming.take(index)
                if coming.isShown(in: found) { last = index + 1 }
            }
            return last.map { ($0, coming.count) }
        }
    }

    @Test func aCutProgressivePNGShowsThePassesThatArrived() throws {
        #expect(Self.sources.count >= 18)
        for (name, whole) in Self.sources {
            let right = try Raster(make(one: whole, "x,png"))
            let start = try #require(Self.place(of: "IDAT", in: whole))
            var (shown, cuts) = (0, 0)
            for part in [0.3, 0.5, 0.7, 0.9, 0.99] {
                let cut = Array(whole[..<(start + 8 + Int(Double(whole.count - start - 24) * part))])
                #expect(failure { _ = try make(cut, "v=x,png") } == .truncated, "\(name)")
                var made: Made?
                // Nothing, or a picture of a single colour, is nothing to show.
                guard failure({ made = try make(cut, "v=x,png", tolerance: Self.accepting) }) == nil, let made else {
                    continue
                }
                cuts += 1
                #expect(made.report.facts.damage != nil && made.report.facts.width == right.width)
                let lines = Coming.lines(of: try Raster(made.files[0]), right)
                #expect(lines != nil, "\(name), \(part)")
                #expect(lines?.shown ?? 0 >= shown, "\(name), \(part): less than of a shorter part")
                shown = lines?.shown ?? 0
                if part > 0.95 { #expect(shown * 2 > lines?.of ?? 0, "\(name)") }
            }
            #expect(cuts > 0, "\(name)")
        }
    }

    @Test func rowsBeforeAFlippedByteAreShown() throws {
        for (name, whole) in Self.sources {
            let right = try Raster(make(one: whole, "x,png"))
            let start = try #require(Self.place(of: "IDAT", in: whole)) + 8
            for part in [0.6, 0.8, 0.95] {
                var bytes = whole
                bytes[start + Int(Double(whole.count - start - 20) * part)] ^= 0x55
                // The checksum is wrong in any case, and the data may be.
                #expect(failure { _ = try make(bytes, "v=x,png") } != nil, "\(name)")
                let made = try make(bytes, "v=x,png w=20x,webp u=9x,jpeg", tolerance: Self.accepting)
                let found = try Raster(made.files[0])
                #expect(made.report.facts.damage != nil && found.size == right.size)
                for y in stride(from: 0, to: right.height / 2, by: 8) {
                    for x in stride(from: 0, to: right.width, by: 8) where right.height >= 16 {
                        #expect(found[x, y] == right[x, y], "\(name), \(part): \(x), \(y)")
                    }
                }
            }
        }
    }

    /// Wrong checksums of right data lose no pixel.
    @Test func wrongChecksumsAreIgnored() throws {
        for (name, whole) in Self.sources {
            var bytes = whole
            bytes[whole.count - 13] ^= 1
            let made = try make(bytes, "v=x,png", tolerance: Self.accepting)
            #expect(try Raster(made.files[0]).bytes == Raster(make(one: whole, "x,png")).bytes, "\(name)")
        }
    }

    @Test func aCutPNGAboveTheMemoryLimitIsRefused() throws {
        let whole = try make(one: TestImages.png(200, 150), "x,png,progressive")
        let cut = Array(whole.prefix(whole.count - 40))
        let limits = ImageLimits(decoderBytes: 200 * 150 * 5)
        let end = failure { _ = try make(cut, "v=x,png", limits: limits, tolerance: Self.accepting) }
        #expect(end == .truncated)
    }

    private static func place(of name: String, in png: [UInt8]) -> Int? {
        let name = Array(name.utf8)
        return (0..<max(0, png.count - 8)).first { png[($0 + 4)..<($0 + 8)].elementsEqual(name) }
    }
}
