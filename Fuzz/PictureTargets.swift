import Core

@testable import ImageFiles
@testable import Imaging
@testable import Variants

// What pictures say of themselves: signatures and headers, which are read before any decoder is asked.

extension FuzzTarget {
    static let pictureTargets =
        [signatures] + ImageFormat.allCases.filter { $0 != .avif }.map(header) + [animatedPNG, animatedAVIF, exif]

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
            if case .refuse(_) = part {
                if case .refuse(_) = whole {} else { preconditionFailure("refused too early") }
            }
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
            _ = format.definition.size(reader)
            _ = DecoderCost(bytes, as: format, limits: limits).objection(limits)
            _ = format.definition.endsEarly(reader)
            if let facts = format.definition.animation(bytes) {
                _ = (facts.isAnimation, facts.isWithin(limits))
            }
            for policy in policies {
                _ = format.definition.hasExtras(reader, policy)
            }
            details(format, bytes, reader, limits)
            // Pixels of small pictures, where the decoder is ours, too.
            for takesBeginning in [false, true] {
                guard let coder = format.definition.coder(takesBeginning: takesBeginning),
                    let header = try? coder.checkedHeader(of: bytes, limits: limits)
                else { continue }
                if header.width * header.height < 1 << 16 {
                    _ = try? coder.checkedImage(of: bytes, header, limits: limits)
                }
            }
        }
    }

    /// Of what the samples don't have.
    private static func furtherSeeds(_ format: ImageFormat) -> [[UInt8]] {
        switch format {
        case .tiff: [bigTIFF(isLittle: true), bigTIFF(isLittle: false)]
        // Two by two pixels of four colours, in passes.
        case .png:
            [
                PNGHeader.signature + [0, 0, 0, 13] + Array("IHDR".utf8) + [0, 0, 0, 2, 0, 0, 0, 2, 2, 3, 0, 0, 1]
                    + [0, 0, 0, 0, 0, 0, 0, 19] + Array("IDAT".utf8)
                    + [0x78, 1, 1, 8, 0, 0xF7, 0xFF, 0, 0x40, 0, 0x80, 0, 0xC0, 0, 0, 0, 0, 0, 0] + [0, 0, 0, 0]
            ]
        // A chunk of each kind.
        case .qoi:
            [
                Array("qoif".utf8) + [0, 0, 0, 3, 0, 0, 0, 2, 4, 1]
                    + [0xFE, 200, 100, 50, 0x7B, 0xA1, 0x6C, 0xFF, 1, 2, 3, 4, 0x09, 0xC0]
                    + [0, 0, 0, 0, 0, 0, 0, 1]
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
        case .jpeg: _ = (JPEGScans.end(reader), ProgressiveJPEG(bytes), format.definition.hidingMetadata(bytes))
        case .png:
            _ = (PNGTexts.excess(reader), format.definition.hidingMetadata(bytes), PatchedBytes(mendingPNG: bytes))
            _ = PatchedBytes(unlacing: bytes, maxBytes: 1 << 20)
        case .tiff:
            _ = TIFFColours(TIFFDirectory(reader))
            _ = TIFFDeflate(reader)?.objection
        case .heic, .avif: _ = (HEIFBoxes(reader).objection(limits), HEIFReferences(reader))
        case .webp:
            _ = (WebPChunk.all(in: bytes).map(\.hasAlpha), format.definition.hidingMetadata(bytes))
            _ = PatchedBytes(endingEarly: bytes)
        case .gif:
            _ = PatchedBytes(singlePixelOf: bytes)
            guard let patched = PatchedBytes(growingScreenOf: bytes) else { return }
            precondition(PatchedBytes(growingScreenOf: patched.bytes) == nil)
        case .jxl, .bmp, .qoi: break
        }
    }

    /// The frames of an animated PNG, before any pixel is decoded.
    private static let animatedPNG = FuzzTarget(name: "animated-png", seeds: [twoFrames]) { bytes in
        _ = PNGData(bytes)?.rows
        guard var file = AnimatedPNG(bytes), let facts = AnimationFacts(png: bytes) else { return }
        precondition(facts.wholeFrames <= facts.frames)
        var count = 0
        while let frame = try? file.next() {
            count += 1
            precondition(!frame.rectangle.isEmpty && frame.data.upperBound <= bytes.count)
            precondition(frame.rectangle.columns.upperBound <= file.canvas.width)
            precondition(frame.rectangle.rows.upperBound <= file.canvas.height)
        }
        precondition(count == facts.wholeFrames)
    }

    /// Of one grey pixel, black and then white.
    private static let twoFrames: [UInt8] = {
        let place: [UInt8] = [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 10, 0, 0]
        let black: [UInt8] = [0x78, 1, 1, 2, 0, 0xFD, 0xFF, 0, 0, 0, 2, 0, 1]
        let white: [UInt8] = [0x78, 1, 1, 2, 0, 0xFD, 0xFF, 0, 0xFF, 1, 1, 1, 0]
        return PNGHeader.signature
            + PNGChunk.bytes("IHDR", [0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0])
            + PNGChunk.bytes("acTL", [0, 0, 0, 2, 0, 0, 0, 0]) + PNGChunk.bytes("fcTL", [0, 0, 0, 0] + place)
            + PNGChunk.bytes("IDAT", black) + PNGChunk.bytes("fcTL", [0, 0, 0, 1] + place)
            + PNGChunk.bytes("fdAT", [0, 0, 0, 2] + white) + PNGChunk.bytes("IEND", [])
    }()

    /// The tracks of an AVIF, and the rewriting of its boxes.
    private static let animatedAVIF = FuzzTarget(name: "animated-avif", seeds: [twoTracks]) { bytes in
        let reader = ByteReader(bytes)
        for policy in policies { _ = HEIFItems.areExtra(in: reader, policy) }
        if let track = AVIFTrack(reader), let facts = AnimationFacts(avif: bytes) {
            precondition(track.frames > 0 && (0...65_535).contains(track.loopCount))
            precondition((1...8).contains(track.orientation))
            _ = (facts.isAnimation, facts.isWithin(ImageLimits()))
        }
        for count in [0, 1, 65_535] {
            guard let head = AVIFPlays(bytes, count: count) else { continue }
            precondition(head.length <= bytes.count && head.bytes.count > head.length)
        }
    }

    /// Two tracks of two frames of sixteen by sixteen pixels, without data.
    private static let twoTracks: [UInt8] = {
        func big(_ number: Int, _ length: Int) -> [UInt8] {
            (0..<length).map { UInt8(truncatingIfNeeded: number >> (8 * (length - 1 - $0))) }
        }
        func box(_ name: String, _ content: [UInt8]...) -> [UInt8] {
            let content = content.flatMap { $0 }
            return big(8 + content.count, 4) + Array(name.utf8) + content
        }
        let times = [1, 0, 0, 0] + big(9, 8) + big(9, 8)
        let samples = box(
            "stbl", box("stco", big(0, 4), big(1, 4), big(600, 4)), box("stsz", big(0, 4), big(7, 4), big(2, 4)),
            box(
                "stsd", big(0, 4), big(1, 4),
                box("av01", [UInt8](repeating: 0, count: 78), box("irot", [1]), box("imir", [0]))))
        func track(_ handler: String) -> [UInt8] {
            box(
                "trak",
                box("tkhd", times, big(1, 4), big(0, 4), big(200, 8), big(0, 52), big(16 << 16, 4), big(16 << 16, 4)),
                box("edts", box("elst", [1, 0, 0, 1], big(1, 4), big(100, 8), big(0, 8), [0, 1, 0, 0])),
                box(
                    "mdia", box("mdhd", times, big(1_000, 4), big(100, 8), big(0, 4)),
                    box("hdlr", big(0, 8), Array(handler.utf8)), box("minf", samples)))
        }
        let movie = box(
            "moov", box("mvhd", times, big(1_000, 4), big(100, 8), big(0, 80)), track("pict"), track("auxv"))
        return box("ftyp", Array("avis".utf8), big(0, 4), Array("avif".utf8)) + movie + box("mdat", big(0, 8))
    }()

    private static let exif = FuzzTarget(
        name: "exif",
        seeds: [Array("II".utf8) + [42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]]
    ) { bytes in
        guard let block = ExifBlock(bytes, where: { _ in true }) else { return }
        let again = block.bytes
        again.withUnsafeBytes { precondition(ExifBlock($0, where: { _ in true }) != nil) }
    }
}
