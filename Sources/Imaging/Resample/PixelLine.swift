import ImageFiles

/// A line of pixels for the resampler: four floats each, colours weighted by their alpha.
///
/// Owns its memory. Not for sharing between threads.
final class PixelLine {
    let count: Int
    let pixels: UnsafeMutablePointer<SIMD4<Float>>

    init(count: Int) {
        self.count = count
        pixels = .allocate(capacity: count)
        clear()
    }

    deinit { pixels.deallocate() }

    func clear() { pixels.update(repeating: .zero, count: count) }
}

/// Converts a pixel's bytes to four floats and back.
struct PixelLayout: Sendable {
    /// Bytes a pixel: 1 to 4.
    let channels: Int
    /// Whether the last channel is alpha. Colours are weighted by it, so that transparent pixels do not bleed into
    /// visible ones.
    let hasAlpha: Bool

    /// The bits of 2²³ as a float. With a byte in its low bits it is 2²³ plus that byte, so subtracting 2²³ makes the
    /// byte a float without a conversion of each lane.
    private static let unit: UInt32 = 0x4B00_0000
    /// 1.5 × 2²³: adding it rounds to the nearest whole number, which is then in the low bits.
    private static let rounding: Float = 12_582_912

    /// - Parameter bytes: `channels` for each pixel of the line.
    func load(_ bytes: UnsafePointer<UInt8>, into line: PixelLine) {
        switch channels {
        case 4: load(bytes, 4, line)
        case 3: load(bytes, 3, line)
        case 2: load(bytes, 2, line)
        default: load(bytes, 1, line)
        }
        if hasAlpha { weigh(line) }
    }

    @inline(__always)
    private func load(_ bytes: UnsafePointer<UInt8>, _ step: Int, _ line: PixelLine) {
        let pixels = line.pixels
        let raw = UnsafeRawPointer(bytes)
        // Four bytes are read for each pixel, so the last pixels, which have fewer bytes after them, are read byte by
        // byte. The neighbour's bytes in a spare lane are never stored.
        let wide = max(0, line.count - 4 / step)
        for index in 0..<wide {
            pixels[index] = Self.floats(raw.loadUnaligned(fromByteOffset: index * step, as: UInt32.self))
        }
        for index in wide..<line.count {
            let word = (0..<step).reduce(UInt32(0)) { $0 | UInt32(bytes[index * step + $1]) << UInt32(8 * $1) }
            pixels[index] = Self.floats(word)
        }
    }

    @inline(__always)
    private static func floats(_ word: UInt32) -> SIMD4<Float> {
        let lanes = SIMD4<UInt32>(truncatingIfNeeded: unsafeBitCast(word, to: SIMD4<UInt8>.self)) | unit
        return unsafeBitCast(lanes, to: SIMD4<Float>.self) - Float(bitPattern: unit)
    }

    private func weigh(_ line: PixelLine) {
        let alpha = channels - 1
        for index in 0..<line.count {
            var pixel = line.pixels[index]
            let weight = pixel[alpha]
            pixel *= weight / 255
            pixel[alpha] = weight
            line.pixels[index] = pixel
        }
    }

    /// Rounds, clips and stores a line.
    func store(_ line: PixelLine, into bytes: UnsafeMutablePointer<UInt8>) {
        if hasAlpha { unweigh(line) }
        switch channels {
        case 4: store(line, 4, bytes)
        case 3: store(line, 3, bytes)
        case 2: store(line, 2, bytes)
        default: store(line, 1, bytes)
        }
    }

    @inline(__always)
    private func store(_ line: PixelLine, _ step: Int, _ bytes: UnsafeMutablePointer<UInt8>) {
        let pixels = line.pixels
        let raw = UnsafeMutableRawPointer(bytes)
        // As in load: the next pixel overwrites the bytes that a store of four puts in its place.
        let wide = max(0, line.count - 4 / step)
        for index in 0..<wide {
            raw.storeBytes(of: Self.word(pixels[index]), toByteOffset: index * step, as: UInt32.self)
        }
        for index in wide..<line.count {
            let word = Self.word(pixels[index])
            for channel in 0..<step {
                bytes[index * step + channel] = UInt8(truncatingIfNeeded: word >> UInt32(8 * channel))
            }
        }
    }

    @inline(__always)
    private static func word(_ pixel: SIMD4<Float>) -> UInt32 {
        let clipped = pixel.replacing(with: 0, where: pixel .< 0).replacing(with: 255, where: pixel .> 255)
        let lanes = unsafeBitCast(clipped + rounding, to: SIMD4<UInt32>.self)
        return unsafeBitCast(SIMD4<UInt8>(truncatingIfNeeded: lanes), to: UInt32.self)
    }

    private func unweigh(_ line: PixelLine) {
        let alpha = channels - 1
        for index in 0..<line.count {
            var pixel = line.pixels[index]
            let weight = pixel[alpha]
            // Less than half a step of alpha is stored as 0, without a colour.
            pixel = weight < 0.5 ? .zero : pixel * (255 / weight)
            pixel[alpha] = weight
            line.pixels[index] = pixel
        }
    }
}
