internal import Core
import ImageFiles

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Pixels of red, green, blue and alpha, eight bits each, not premultiplied, row by row without gaps.
///
/// The only owner of its memory. Not for sharing between threads.
final class PixelBuffer {
    let size: PixelSize
    private let start: UnsafeMutablePointer<Pixel>

    /// Initialised to transparent black.
    ///
    /// - Throws: class `transform` if there is no memory for it: a size within the limits may still be too much for a
    ///   process with a memory limit.
    init(_ size: PixelSize) throws(Failure) {
        guard let memory = calloc(max(1, size.pixels), MemoryLayout<Pixel>.stride) else {
            throw Failure(.transform, "There is no memory for \(size.width)×\(size.height) pixels.")
        }
        self.size = size
        start = memory.bindMemory(to: Pixel.self, capacity: size.pixels)
    }

    deinit { free(start) }

    /// Lends all pixels. The pointer must not outlive `body`.
    func lend<Result, Failure: Error>(
        _ body: (UnsafeMutableBufferPointer<Pixel>) throws(Failure) -> Result,
    ) throws(Failure) -> Result {
        defer { withExtendedLifetime(self) {} }
        return try body(UnsafeMutableBufferPointer(start: start, count: size.pixels))
    }

    /// - Parameter other: of the same size.
    func copy(from other: PixelBuffer) {
        lend { target in other.lend { source in _ = target.update(fromContentsOf: source) } }
    }

    func copy(from other: UnsafePointer<UInt8>) {
        lend { UnsafeMutableRawBufferPointer($0).baseAddress?.copyMemory(from: other, byteCount: size.pixels * 4) }
    }

    func clear() {
        start.update(repeating: Pixel(), count: size.pixels)
    }

    /// Makes the part of `rectangle` that lies on the buffer transparent black.
    func clear(_ rectangle: PixelRectangle) {
        let visible = rectangle.clipped(to: size)
        for y in visible.rows {
            (start + y * size.width + visible.left).update(repeating: Pixel(), count: visible.width)
        }
    }

    var isOpaque: Bool { lend { pixels in pixels.allSatisfy { $0.alpha == 255 } } }
}

/// One pixel as it is in memory: red first, alpha last. Stored as one number, since most code compares pixels.
struct Pixel: Hashable {
    /// The layout of libwebp and libvips; all supported systems are little-endian.
    private(set) var bits: UInt32 = 0

    init() {}

    init(red: UInt8, green: UInt8, blue: UInt8, alpha: UInt8 = 255) {
        bits = UInt32(red) | UInt32(green) << 8 | UInt32(blue) << 16 | UInt32(alpha) << 24
    }

    var red: Int { Int(bits & 0xFF) }
    var green: Int { Int(bits >> 8 & 0xFF) }
    var blue: Int { Int(bits >> 16 & 0xFF) }
    var alpha: Int { Int(bits >> 24) }

    var opaque: Pixel {
        var pixel = self
        pixel.bits |= 0xFF00_0000
        return pixel
    }
}

/// A rectangle in pixels, relative to the upper left corner; it may lie outside of its picture.
struct PixelRectangle: Hashable {
    var left = 0
    var top = 0
    var width = 0
    var height = 0

    init(left: Int = 0, top: Int = 0, width: Int = 0, height: Int = 0) {
        (self.left, self.top, self.width, self.height) = (left, top, width, height)
    }

    /// The smallest rectangle with all places for which `counts` returns true, by rows from the top; one pixel if there
    /// is none.
    @inline(__always)
    init(around counts: (Int) -> Bool, in size: PixelSize) {
        self.init(width: 1, height: 1)
        var (left, right) = (size.width, -1)
        var rows: Range<Int>?
        for y in 0..<size.height {
            let row = (y * size.width)..<((y + 1) * size.width)
            guard let first = row.first(where: counts), let last = row.last(where: counts) else { continue }
            left = min(left, first - row.lowerBound)
            right = max(right, last - row.lowerBound)
            rows = (rows?.lowerBound ?? y)..<(y + 1)
        }
        guard let rows else { return }
        self.init(left: left, top: rows.lowerBound, width: right - left + 1, height: rows.count)
    }

    var isEmpty: Bool { width <= 0 || height <= 0 }
    var columns: Range<Int> { left..<(left + max(0, width)) }
    var rows: Range<Int> { top..<(top + max(0, height)) }

    func clipped(to size: PixelSize) -> PixelRectangle {
        let right = min(left + width, size.width)
        let bottom = min(top + height, size.height)
        let left = max(0, min(left, size.width))
        let top = max(0, min(top, size.height))
        return PixelRectangle(left: left, top: top, width: max(0, right - left), height: max(0, bottom - top))
    }
}
