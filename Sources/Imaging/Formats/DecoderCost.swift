public import SystemPackage

/// What a decoder would need beyond the rows it delivers, judged without decoding.
///
/// Those of plain JPEG, PNG and TIFF hold a few rows, whatever the picture's size; the others hold all of it, some more
/// than once, or can be made to go over the file again and again. Bytes for each pixel are what helpers were seen to
/// hold of 48 million: 8.5 of a HEIC, 8.1 of an AVIF, 7 of a JPEG XL, 4.9 of a GIF, 8.2 of a BMP.
struct DecoderCost {
    /// What is held at once, beside the pixels that are asked for.
    private(set) var bytes = 0
    /// How often the decoder goes over the picture.
    private(set) var scans = 1
    /// Frames that are listed even where only the first is wanted.
    private(set) var frames = 1

    init(_ bytes: UnsafeRawBufferPointer, as format: ImageFormat, limits: ImageLimits) {
        let reader = ByteReader(bytes)
        switch format {
        case .jpeg:
            let found = JPEGScans(reader, upTo: limits.scans)
            (self.bytes, scans) = (found.coefficientBytes, found.count)
        case .png: self.bytes = Self.interlacedBytes(reader)
        case .webp:
            frames = Self.frames(reader)
            self.bytes = Self.bytes(HeaderInspector.size(reader, format), each: 4)
        case .gif: self.bytes = Self.bytes(HeaderInspector.size(reader, format), each: 8)
        case .heic, .avif:
            let boxes = HEIFBoxes(reader)
            self.bytes = boxes.largest.map { Self.bytes($0, each: boxes.depth > 8 ? 18 : 9) } ?? 0
        case .jxl: self.bytes = JXLHeader.size(reader).map { Self.bytes($0, each: 8) } ?? 0
        case .bmp: self.bytes = BMPHeader.size(reader).map { Self.bytes($0, each: 9) } ?? 0
        case .tiff: break
        }
    }

    private static func bytes(_ finding: HeaderFinding?, each: Int) -> Int {
        if case .size(let width, let height)? = finding {
            bytes(PixelSize(width: width, height: height), each: each)
        } else {
            0
        }
    }

    /// Headers may claim anything.
    private static func bytes(_ size: PixelSize, each: Int) -> Int {
        let pixels = size.width.multipliedReportingOverflow(by: size.height)
        let product = pixels.partialValue.multipliedReportingOverflow(by: each)
        return pixels.overflow || product.overflow ? .max : product.partialValue
    }

    /// An interlaced PNG has its rows only at its end. W3C PNG, 11.2.1: width, height, depth, colour type, …, interlace.
    private static func interlacedBytes(_ reader: ByteReader) -> Int {
        guard let width = reader.big(4, at: 16), let height = reader.big(4, at: 20), let depth = reader.byte(at: 24),
            let type = reader.byte(at: 25), reader.byte(at: 28) == 1
        else { return 0 }
        // With the alpha that a tRNS chunk may add.
        let sample = (type & 2 == 0 ? 2 : 4) * (depth == 16 ? 2 : 1)
        return bytes(PixelSize(width: width, height: height), each: sample)
    }

    /// RFC 9649, 2.3: chunks of name, length and data, filled up to an even length.
    private static func frames(_ reader: ByteReader) -> Int {
        var offset = 12
        var count = 0
        while let length = reader.little(4, at: offset + 4) {
            if reader.has("ANMF", at: offset) { count += 1 }
            offset += 8 + length + length % 2
        }
        return count
    }

    /// What is wrong with that, if anything.
    func objection(_ limits: ImageLimits) -> ImagingError? {
        if scans > limits.scans {
            return ImagingError(
                code: .tooManyPixels,
                message: "The picture comes in more than \(limits.scans) scans, which is the limit.")
        }
        if frames / Self.listedFrames > limits.frames {
            return ImagingError(
                code: .tooManyPixels,
                message: "The animation has \(frames) frames, too many to look for the first of them.")
        }
        guard bytes > limits.decoderBytes else { return nil }
        return ImagingError(
            code: .tooManyPixels,
            message: "Its decoder would hold \(bytes >> 20) MiB, and the limit is \(limits.decoderBytes >> 20) MiB.")
    }

    /// libwebp goes through the list of frames anew for each of them: 10,000 take a tenth of a second, 100,000 eight.
    private static let listedFrames = 10
}

/// Tells what a decoder would hold of a picture besides the rows it delivers, so that several large ones are not decoded
/// at once.
public struct DecoderEstimate: Sendable {
    private let limits: ImageLimits

    public init(limits: ImageLimits) {
        self.limits = limits
    }

    /// - Returns: bytes; 0 for what is decoded row by row, and for what can't be read.
    public func bytes(_ source: FileDescriptor) -> Int {
        // Whoever decodes it will find the same, and say it.
        let cost = try? SourceMapping(source).lend { bytes throws(ImagingError) in
            ImageFormat.sniff(bytes).map { DecoderCost(bytes, as: $0, limits: limits).bytes } ?? 0
        }
        return cost ?? 0
    }
}
