import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

@Suite(.timeLimit(.minutes(15)))
struct FilterTableTests {
    private static let lengths = [(1, 1), (2, 1), (3, 2), (7, 7), (100, 99), (800, 640), (1_000, 3), (65_536, 1)]

    @Test(arguments: lengths)
    func weightsOfEveryWindowAddUpToOne(from: Int, to: Int) {
        let table = FilterTable(from: from, to: to)
        #expect(table.windows.count == to)
        for window in table.windows {
            let sum = table.weights[window.offset..<window.offset + window.count].reduce(0) { $0 + Double($1.x) }
            #expect(abs(sum - 1) < 1e-4)
        }
    }

    @Test(arguments: lengths)
    func filterWindowsLieInTheLineAndNeverGoBack(from: Int, to: Int) {
        let windows = FilterTable(from: from, to: to).windows
        #expect(windows.allSatisfy { $0.start >= 0 && $0.end <= from && $0.count >= 1 })
        #expect(zip(windows, windows.dropFirst()).allSatisfy { $0.start <= $1.start && $0.end <= $1.end })
    }

    @Test(arguments: lengths)
    func aLineReadBackwardsHasTheSameWeights(from: Int, to: Int) throws {
        let table = FilterTable(from: from, to: to)
        for (left, right) in zip(table.windows, table.windows.reversed()) {
            #expect(left.start == from - right.end)
            let leftWeights = table.weights[left.offset..<left.offset + left.count]
            let rightWeights = table.weights[right.offset..<right.offset + right.count].reversed()
            #expect(zip(leftWeights, rightWeights).allSatisfy { abs($0.x - $1.x) < 1e-5 })
        }
    }

    /// The number of open lines is bounded, so memory doesn't grow with the shrink factor.
    @Test(arguments: [(800, 640), (10_000, 100), (65_536, 16)])
    func aSourcePixelIsInAtMostSevenWindows(from: Int, to: Int) {
        #expect(FilterTable(from: from, to: to).overlap <= 7)
    }

    @Test func aScaleOfOneCopiesThePixels() {
        let table = FilterTable(from: 9, to: 9)
        #expect(table.windows.map(\.start) == Array(0..<9))
        #expect(table.windows.allSatisfy { $0.count == 1 })
    }
}

@Suite(.timeLimit(.minutes(15)))
struct ResamplerTests {
    /// All channels of all lines, as one array.
    private func shrunk(_ bytes: [UInt8], _ from: PixelSize, to: PixelSize, _ layout: PixelLayout) -> [UInt8] {
        var resampler = Resampler(from: from, to: to, layout: layout)
        var line = [UInt8](repeating: 0, count: to.width * layout.channels)
        var result: [UInt8] = []
        let step = from.width * layout.channels
        bytes.withUnsafeBufferPointer { bytes in
            line.withUnsafeMutableBufferPointer { line in
                guard let start = bytes.baseAddress, let scratch = line.baseAddress else { return }
                for row in 0..<from.height {
                    resampler.take(start + row * step)
                    while resampler.hasLine {
                        resampler.give(scratch)
                        result.append(contentsOf: UnsafeBufferPointer(line))
                    }
                }
            }
        }
        return result
    }

    private static let sizes: [(PixelSize, PixelSize)] = [
        (PixelSize(width: 1, height: 1), PixelSize(width: 1, height: 1)),
        (PixelSize(width: 5, height: 1), PixelSize(width: 2, height: 1)),
        (PixelSize(width: 1, height: 9), PixelSize(width: 1, height: 4)),
        (PixelSize(width: 17, height: 13), PixelSize(width: 17, height: 5)),
        (PixelSize(width: 64, height: 48), PixelSize(width: 13, height: 48)),
        (PixelSize(width: 200, height: 150), PixelSize(width: 3, height: 2)),
    ]

    @Test(arguments: sizes, [1, 2, 3, 4])
    func aPictureOfOneColourKeepsItsColour(sizes: (PixelSize, PixelSize), channels: Int) {
        let colour: [UInt8] = [255, 0, 97, 181]
        let picture = (0..<sizes.0.pixels).flatMap { _ in colour[..<channels] }
        let small = shrunk(picture, sizes.0, to: sizes.1, PixelLayout(channels: channels, hasAlpha: false))
        #expect(small == (0..<sizes.1.pixels).flatMap { _ in colour[..<channels] })
    }

    @Test(arguments: [1, 2, 3, 4])
    func theSameSizeKeepsThePixels(channels: Int) {
        var random = SeededGenerator(seed: 7)
        let size = PixelSize(width: 31, height: 17)
        let picture = (0..<size.pixels * channels).map { _ in UInt8.random(in: 0...255, using: &random) }
        #expect(shrunk(picture, size, to: size, PixelLayout(channels: channels, hasAlpha: false)) == picture)
    }

    @Test func transparentPixelsAddNoColour() {
        // Left half opaque red, right half transparent green.
        let row: [UInt8] = (0..<32).flatMap { $0 < 16 ? [255, 0, 0, 255] : [0, 255, 0, 0] }
        let size = PixelSize(width: 32, height: 8)
        let picture = (0..<8).flatMap { _ in row }
        let small = shrunk(picture, size, to: PixelSize(width: 9, height: 2), PixelLayout(channels: 4, hasAlpha: true))
        for pixel in stride(from: 0, to: small.count, by: 4) where small[pixel + 3] > 0 {
            #expect(small[pixel] >= 250 && small[pixel + 1] == 0)
        }
        #expect(Array(small[..<4]) == [255, 0, 0, 255])
        #expect(small[35] == 0)
    }

    /// libvips uses integer weights and rounds between the passes, so single steps may differ. (Beyond a shrink of
    /// four it takes a box filter first, and is no measure any more.)
    @Test(arguments: [(640, 480), (401, 250), (799, 599), (800, 300), (250, 600), (320, 240)])
    func pixelsAreNearToThoseOfLibvips(width: Int, height: Int) throws {
        try ImagingRuntime.start()
        // Fine and coarse texture together, in three different channels.
        let source = TestImages.png(800, 600) { x, y in
            (UInt8(x * y / 97 % 256), UInt8(128 + (x / 5 + y / 3) % 2 * 90), UInt8((x + y) % 256), 255)
        }
        let size = PixelSize(width: width, height: height)
        try source.withUnsafeBytes { bytes in
            let picture = try Picture(of: bytes, as: .png).inMemory()
            let ours = try picture.shrunk(to: size).withPixels { Array($0) }
            let theirs = try picture.resizedByLibvips(to: size).withPixels { Array($0) }
            let difference = zip(ours, theirs).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
            #expect(ours.count == theirs.count)
            #expect(Double(difference) / Double(ours.count) < 1.5)
        }
    }
}
