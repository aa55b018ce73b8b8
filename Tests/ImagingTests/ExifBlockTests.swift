import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

@Suite(.timeLimit(.minutes(15)))
struct ExifBlockTests {
    private static let cameraTag: UInt16 = 0x8769

    /// A block of either byte order: an artist, two resolutions, and what the camera says.
    private static func block(bigEndian: Bool) -> [UInt8] {
        func number(_ value: Int, _ bytes: Int) -> [UInt8] {
            bigEndian ? TestImages.big(value, bytes) : TestImages.little(value, bytes)
        }
        func line(_ tag: UInt16, _ type: Int, _ count: Int, _ value: Int) -> [UInt8] {
            number(Int(tag), 2) + number(type, 2) + number(count, 4) + number(value, 4)
        }
        let main = number(4, 2) + line(0x0112, 4, 1, 6) + line(0x013B, 2, 5, 62) + line(cameraTag, 4, 1, 68)
        let camera = number(2, 2) + line(0x829A, 5, 1, 98) + line(0x8827, 4, 1, 400) + number(0, 4)
        let start = Array((bigEndian ? "MM" : "II").utf8) + number(42, 2) + number(8, 4)
        return start + main + line(0x4746, 4, 1, 5) + number(0, 4) + Array("Anna\0\0".utf8) + camera + number(1, 4)
            + number(125, 4)
    }

    private static func entries(_ bytes: [UInt8]) -> (main: [ExifBlock.Entry], camera: [ExifBlock.Entry]) {
        bytes.withUnsafeBytes { bytes in
            var directories = ExifDirectories(bytes)
            guard let first = directories.first else { return ([], []) }
            let main = directories.entries(at: first)
            let place = main.first { $0.tag == cameraTag }?.value.reversed().reduce(0) { $0 << 8 | Int($1) }
            return (main, place.map { directories.entries(at: $0) } ?? [])
        }
    }

    @Test(arguments: [false, true]) func bothByteOrdersAreReadAndWritten(bigEndian: Bool) throws {
        let source = Self.block(bigEndian: bigEndian)
        let block = try #require(source.withUnsafeBytes { ExifBlock($0) { _ in true } })
        let (main, camera) = Self.entries(block.bytes)
        // How the picture was turned is no longer true, and the pointer is a new one.
        #expect(main.map(\.tag) == [0x013B, 0x4746, Self.cameraTag])
        #expect(main.first?.value == Array("Anna\0".utf8))
        #expect(camera.map(\.tag) == [0x829A, 0x8827])
        #expect(camera.first?.value == [1, 0, 0, 0, 125, 0, 0, 0] && camera.last?.value == [144, 1, 0, 0])
        // Once more makes no difference.
        let again = try #require(block.bytes.withUnsafeBytes { ExifBlock($0) { _ in true } })
        #expect(again.bytes == block.bytes)
    }

    @Test func tagsAreLeftOutOnRequest() throws {
        let source = Array("Exif\0\0".utf8) + Self.block(bigEndian: true)
        let block = try #require(source.withUnsafeBytes { ExifBlock($0) { $0 != 0x013B } })
        #expect(Self.entries(block.bytes).main.map(\.tag) == [0x4746, Self.cameraTag])
    }

    @Test func damagedBlocksNeverTrap() {
        var random = SeededGenerator(seed: 5)
        for index in 0..<20_000 {
            var bytes = Self.block(bigEndian: index.isMultiple(of: 2))
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: 0...255, using: &random)
            }
            bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &random)))
            let block = bytes.withUnsafeBytes { ExifBlock($0) { _ in true } }
            #expect((block?.bytes.count ?? 0) < 10_000)
        }
    }

    /// A thousand entries with the same large value.
    @Test func entriesThatShareBytesDoNotMultiplyTheSize() throws {
        let count = 1_000
        var bytes = Array("II".utf8) + [42, 0, 8, 0, 0, 0] + TestImages.little(count, 2)
        for tag in 0..<count {
            bytes += TestImages.little(40_000 + tag, 2) + [7, 0] + TestImages.little(60_000, 4) + [0, 0, 0, 0]
        }
        bytes += [UInt8](repeating: 1, count: 60_000)
        let block = try #require(bytes.withUnsafeBytes { ExifBlock($0) { _ in true } })
        #expect(block.bytes.count < 1 << 20 + 20_000)
    }
}
