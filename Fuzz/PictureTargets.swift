@testable import Imaging

// What pictures say of themselves: signatures and headers, which are read before any decoder is asked.

extension FuzzTarget {
    static let pictureTargets =
        [signatures] + ImageFormat.allCases.filter { $0 != .avif }.map(header) + [exif]

    /// What the worker does with the first bytes of each download.
    private static let signatures = FuzzTarget(
        name: "signatures", seeds: ImageFormat.allCases.map { SampleImage.bytes(of: $0) }
    ) { bytes in
        let inspector = HeaderInspector(limits: ImageLimits())
        let whole = inspector.inspect(bytes)
        _ = (ImageFormat.sniff(bytes), ImageFormat.mayBegin(bytes))
        // What has come so far is never refused, and taken once more has come.
        for count in [bytes.count / 2, bytes.count - 1] where count > 0 {
            let part = inspector.inspect(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
            if case .refused = part { if case .refused = whole {} else { preconditionFailure("refused too early") } }
        }
    }

    private static let policies: [MetadataPolicy] = {
        var options = VariantOptions()
        options.set(.keepMetadata, .flag(true))
        return [MetadataPolicy(VariantOptions()), MetadataPolicy(options)]
    }()

    /// Everything that is read of a format without a decoder, whatever the bytes are.
    private static func header(_ format: ImageFormat) -> FuzzTarget {
        let seeds = format == .heic ? [format, .avif] : [format]
        return FuzzTarget(
            name: "header-\(format.rawValue)", seeds: seeds.map { SampleImage.bytes(of: $0) } + furtherSeeds(format)
        ) { bytes in
            let reader = ByteReader(bytes)
            let limits = ImageLimits()
            _ = HeaderInspector.size(reader, format)
            _ = DecoderCost(bytes, as: format, limits: limits).objection(limits)
            _ = Structure(of: bytes, as: format)
            if format == .webp || format == .gif, let facts = AnimationFacts(bytes, as: format) {
                _ = (facts.isAnimation, facts.isWithin(limits))
            }
            for policy in policies {
                _ = Extras(policy: policy).areIn(bytes, format)
            }
            details(format, bytes, reader, limits)
        }
    }

    /// Of what the samples don't have.
    private static func furtherSeeds(_ format: ImageFormat) -> [[UInt8]] {
        switch format {
        case .tiff: [bigTIFF(isLittle: true), bigTIFF(isLittle: false)]
        // Two by two pixels of four colours, in passes.
        case .png:
            [
                ImageFormat.pngSignature + [0, 0, 0, 13] + Array("IHDR".utf8) + [0, 0, 0, 2, 0, 0, 0, 2, 2, 3, 0, 0, 1]
                    + [0, 0, 0, 0, 0, 0, 0, 19] + Array("IDAT".utf8)
                    + [0x78, 1, 1, 8, 0, 0xF7, 0xFF, 0, 0x40, 0, 0x80, 0, 0xC0, 0, 0, 0, 0, 0, 0] + [0, 0, 0, 0]
            ]
        case .jpeg, .webp, .gif, .heic, .avif, .jxl, .bmp: []
        }
    }

    /// Numbers of 64 bits: one grey pixel, whose strip isn't compressed.
    private static func bigTIFF(isLittle: Bool) -> [UInt8] {
        func number(_ value: Int, _ length: Int) -> [UInt8] {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
            return isLittle ? bytes : bytes.reversed()
        }
        let tags = [(256, 1), (257, 1), (258, 8), (259, 8), (262, 1), (273, 16), (277, 1), (278, 1), (279, 8)]
        let entries = tags.flatMap { tag, value in number(tag, 2) + number(16, 2) + number(1, 8) + number(value, 8) }
        return Array((isLittle ? "II" : "MM").utf8) + number(43, 2) + number(8, 2) + number(0, 2) + number(24, 8)
            + [0x78, 1, 3, 0, 0, 0, 0, 1] + number(tags.count, 8) + entries + number(0, 8)
    }

    private static func details(
        _ format: ImageFormat, _ bytes: UnsafeRawBufferPointer, _ reader: ByteReader, _ limits: ImageLimits
    ) {
        switch format {
        case .jpeg: _ = (JPEGScans.end(reader), ProgressiveJPEG(bytes), PatchedBytes(hidingMetadataOf: bytes, .jpeg))
        case .png:
            _ = (PNGTexts.excess(reader), PatchedBytes(hidingMetadataOf: bytes, .png), PatchedBytes(mendingPNG: bytes))
            _ = PatchedBytes(unlacing: bytes, most: 1 << 20)
        case .tiff:
            _ = TIFFColours(TIFFDirectory(reader))
            _ = TIFFDeflate(reader)?.objection
        case .heic, .avif: _ = (HEIFBoxes(reader).objection(limits), HEIFReferences(reader))
        case .webp:
            _ = (WebPChunk.all(in: bytes).map(\.hasAlpha), PatchedBytes(hidingMetadataOf: bytes, .webp))
            _ = PatchedBytes(endingEarly: bytes)
        case .bmp:
            // Pixels of what is small; the decoder is ours, too.
            for coder in [BMPCoder(), BMPCoder(takesBeginning: true)] {
                guard let header = try? coder.checkedHeader(of: bytes, limits: limits) else { return }
                if header.width * header.height < 1 << 16 {
                    _ = try? coder.checkedImage(of: bytes, header, limits: limits)
                }
            }
        case .gif:
            _ = PatchedBytes(stubOf: bytes)
            guard let patched = PatchedBytes(growingScreenOf: bytes) else { return }
            precondition(PatchedBytes(growingScreenOf: patched.bytes) == nil)
        case .jxl: break
        }
    }

    private static let exif = FuzzTarget(
        name: "exif",
        seeds: [Array("II".utf8) + [42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]]
    ) { bytes in
        guard let block = ExifBlock(bytes, where: { _ in true }) else { return }
        let again = block.bytes
        again.withUnsafeBytes { precondition(ExifBlock($0, where: { _ in true }) != nil) }
    }
}
