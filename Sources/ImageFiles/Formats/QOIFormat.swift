package import Core
internal import Glibc

/// The Quite OK Image Format, decoded by ``QOICoder`` without a library. https://qoiformat.org/qoi-specification.pdf
package struct QOIFormat: FormatHeader {
    package let name = "qoi"
    package let signatureLength = QOIHeader.length

    package func begins(_ reader: ByteReader) -> Bool { QOIHeader.begins(reader) }
    package func mayBegin(_ reader: ByteReader) -> Bool {
        reader.count < signatureLength && reader.has(Array("qoif".utf8.prefix(reader.count)), at: 0)
    }

    /// The decoder holds all pixels twice while it hands them over.
    package func cost(_ reader: ByteReader, limits: ImageLimits) -> DecoderCost {
        DecoderCost(QOIHeader(reader).map { PixelSize(width: $0.width, height: $0.height) }, each: 9)
    }
    package func endsEarly(_ reader: ByteReader) -> Bool { QOICoder.endsEarly(reader) }

    package func coder(takesBeginning: Bool) -> (any ImageCoder)? { QOICoder(takesBeginning: takesBeginning) }

    package let sample = "cW9pZgAAABAAAAAQAwD+yGQy/f39/cYAAAAAAAAAAQ=="
}

/// The first fourteen bytes of a QOI: `qoif`, two sides, the number of channels, and the colour space.
package struct QOIHeader {
    package static let length = 14

    /// Up to 32 bits each, so products of them do not overflow.
    package let width: Int
    package let height: Int
    package let hasAlpha: Bool
    /// Whether red, green and blue are linear light; otherwise they are sRGB.
    package let isLinear: Bool

    package static func begins(_ reader: ByteReader) -> Bool {
        guard reader.has("qoif", at: 0), let channels = reader.byte(at: 12), let space = reader.byte(at: 13) else {
            return false
        }
        return (3...4).contains(channels) && space <= 1
    }

    /// Nil if there are fewer bytes, or if they are not those of a QOI.
    package init?(_ reader: ByteReader) {
        guard Self.begins(reader), let width = reader.big(4, at: 4), let height = reader.big(4, at: 8) else {
            return nil
        }
        (self.width, self.height) = (width, height)
        hasAlpha = reader.byte(at: 12) == 4
        isLinear = reader.byte(at: 13) == 1
    }

    /// Whether this many bytes can hold all pixels: the longest run is 62 pixels in one byte.
    package func mayBeWhole(_ count: Int) -> Bool {
        let (pixels, isTooMany) = width.multipliedReportingOverflow(by: height)
        return !isTooMany && count - Self.length >= pixels / QOIPixels.maxRun
    }
}

/// Decodes QOI. The end mark may be missing if all pixels are there; bytes after the last pixel are not read.
package struct QOICoder: ImageCoder {
    package let name = "qoi"
    package let version = "1"
    package let mediaType = "image/qoi"
    package let fileExtension = "qoi"
    package let signatureLength = QOIHeader.length
    /// Whether the pixels of a file that ends early are accepted; the rest is then transparent.
    package var takesBeginning = false

    package func sniff(_ prefix: UnsafeRawBufferPointer) -> Bool { QOIHeader.begins(ByteReader(prefix)) }

    package func header(of prefix: UnsafeRawBufferPointer) throws -> ImageHeader? {
        QOIHeader(ByteReader(prefix)).map {
            ImageHeader(width: $0.width, height: $0.height, hasAlpha: $0.hasAlpha || takesBeginning)
        }
    }

    package func decode(_ bytes: UnsafeRawBufferPointer, limits: ImageLimits) throws -> RGBAImage {
        guard let header = QOIHeader(ByteReader(bytes)) else { throw Self.truncated }
        if let objection = limits.objection(width: header.width, height: header.height) { throw objection }
        // A few bytes that claim a large picture get no memory for it.
        guard takesBeginning || header.mayBeWhole(bytes.count) else { throw Self.truncated }
        let size = header.width * header.height
        var count = 0
        let rgba = [UInt8](unsafeUninitializedCapacity: 4 * size) { memory, initialised in
            memory.initialize(repeating: 0)
            initialised = memory.count
            memory.withMemoryRebound(to: QOIPixel.self) { target in
                var pixels = QOIPixels(bytes: bytes, offset: QOIHeader.length)
                count = pixels.decode(to: target)
                for index in 0..<count { target[index] = header.shown(target[index]) }
            }
        }
        guard count == size || takesBeginning && count > 0,
            let image = RGBAImage(width: header.width, height: header.height, pixels: rgba)
        else { throw Self.truncated }
        return image
    }

    /// Whether a chunk is missing, or a part of the end mark of eight bytes.
    package static func endsEarly(_ reader: ByteReader) -> Bool {
        guard let header = QOIHeader(reader), header.mayBeWhole(reader.count) else { return true }
        var left = header.width * header.height
        var pixels = QOIPixels(bytes: reader.bytes, offset: QOIHeader.length)
        while left > 0 {
            guard let run = pixels.next() else { return true }
            left -= run
        }
        return reader.count - pixels.offset < 8
    }

    package static let truncated = Failure(.truncated, "The QOI ends before its picture does.")
}

extension QOIHeader {
    /// A pixel in sRGB, opaque if the picture has three channels; its chunks may contain an alpha anyway.
    fileprivate func shown(_ pixel: QOIPixel) -> QOIPixel {
        var shown = pixel
        if !hasAlpha { shown.alpha = 255 }
        guard isLinear else { return shown }
        shown.red = Self.curve[Int(pixel.red)]
        shown.green = Self.curve[Int(pixel.green)]
        shown.blue = Self.curve[Int(pixel.blue)]
        return shown
    }

    /// From linear light to sRGB (IEC 61966-2-1).
    private static let curve = (0...255).map { byte in
        let light = Double(byte) / 255
        return UInt8((255 * (light <= 0.003_130_8 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055)).rounded())
    }
}

/// A pixel as the picture has it in memory.
private struct QOIPixel {
    var red: UInt8 = 0
    var green: UInt8 = 0
    var blue: UInt8 = 0
    var alpha: UInt8 = 0

    /// Its index in the table of recently seen pixels.
    var hash: Int { (Int(red) * 3 + Int(green) * 5 + Int(blue) * 7 + Int(alpha) * 11) % 64 }
}

/// Reads chunks of one to five bytes, each one pixel or a run of the pixel before.
private struct QOIPixels {
    static let maxRun = 62

    let bytes: UnsafeRawBufferPointer
    var offset: Int
    private var pixel = QOIPixel(alpha: 255)
    /// The last pixel of each hash.
    private var seen = [QOIPixel](repeating: QOIPixel(), count: 64)

    init(bytes: UnsafeRawBufferPointer, offset: Int) {
        (self.bytes, self.offset) = (bytes, offset)
    }

    /// - Returns: the number of pixels before the bytes end.
    mutating func decode(to target: UnsafeMutableBufferPointer<QOIPixel>) -> Int {
        var index = 0
        while index < target.count {
            guard let run = next() else { return index }
            let end = min(index + run, target.count)
            target[index..<end].update(repeating: pixel)
            index = end
        }
        return index
    }

    /// Reads a chunk into ``pixel``.
    ///
    /// - Returns: the number of pixels that it stands for; nil if it is incomplete.
    mutating func next() -> Int? {
        guard let tag = take() else { return nil }
        var run = 1
        switch tag {
        case 0xFE:
            guard let red = take(), let green = take(), let blue = take() else { return nil }
            pixel = QOIPixel(red: red, green: green, blue: blue, alpha: pixel.alpha)
        case 0xFF:
            guard let red = take(), let green = take(), let blue = take(), let alpha = take() else { return nil }
            pixel = QOIPixel(red: red, green: green, blue: blue, alpha: alpha)
        case 0..<0x40:
            pixel = seen[Int(tag)]
        case 0x40..<0x80:
            move(red: Int(tag >> 4 & 3) - 2, green: Int(tag >> 2 & 3) - 2, blue: Int(tag & 3) - 2)
        case 0x80..<0xC0:
            guard let others = take() else { return nil }
            let green = Int(tag & 0x3F) - 32
            move(red: green + Int(others >> 4) - 8, green: green, blue: green + Int(others & 15) - 8)
        default:
            run = Int(tag & 0x3F) + 1
        }
        seen[pixel.hash] = pixel
        return run
    }

    /// Differences wrap around.
    private mutating func move(red: Int, green: Int, blue: Int) {
        pixel.red &+= UInt8(truncatingIfNeeded: red)
        pixel.green &+= UInt8(truncatingIfNeeded: green)
        pixel.blue &+= UInt8(truncatingIfNeeded: blue)
    }

    private mutating func take() -> UInt8? {
        guard offset < bytes.count else { return nil }
        defer { offset += 1 }
        return bytes[offset]
    }
}
