internal import CVips
internal import Core
import ImageFiles
internal import SystemPackage
import Variants

/// GIF: libvips reads the header, giflib decodes all frames and writes stills and animations. GIF89a.
struct GIFFormat: FormatDefinition {
    let header: any FormatHeader = ImageFormat.gif.header
    let loaderClass: String? = "VipsForeignLoadNsgifSource"
    let libraries = ["vips", "gif"]
    let saver: (any FormatSaver)? = GIFSaver()

    func animation(_ bytes: UnsafeRawBufferPointer) -> AnimationFacts? { AnimationFacts(gif: bytes) }

    func hasExtras(_ reader: ByteReader, _ policy: MetadataPolicy) -> Bool { GIFBlocks.areExtra(in: reader, policy) }

    // MARK: - Loader

    func load(
        _ source: UnsafeMutablePointer<VipsSource>, _ scale: DecodeScale, isLenient: Bool,
        _ result: inout UnsafeMutablePointer<VipsImage>?,
    ) -> CInt { pw_vips_load_gif(source, &result) }

    /// Decoded by the reader of animations, since libvips' decoder fills missing data without a warning.
    func firstFrame(_ file: OpenedFrames) throws(Failure) -> Picture? {
        // The number of other frames does not matter.
        var limits = file.limits
        (limits.frames, limits.animationPixels) = (.max, .max)
        guard let first = try GIFFrameSource(bytes: file.bytes, limits: limits, isLenient: file.isLenient).next() else {
            throw Failure(.badImage, "The GIF has no frame.")
        }
        let frame = try first.pixels.picture()
        if file.header.hasAlpha || !first.pixels.isOpaque { return frame }
        do throws(VipsFailure) {
            return try frame.then { pw_vips_first_bands($0, &$1, 3) }
        } catch {
            throw error.error(.transform, "The GIF could not be scaled")
        }
    }

    func frames(
        _ bytes: UnsafeRawBufferPointer, limits: ImageLimits, isLenient: Bool,
    ) throws(Failure) -> (any FrameSource)? {
        try GIFFrameSource(bytes: bytes, limits: limits, isLenient: isLenient)
    }

    /// The first frame, on a screen enlarged to hold it; missing rows of an interlaced frame are copied from the rows
    /// above them. Best effort: nil if no frame can be decoded, since a preview is then skipped.
    func preview(_ bytes: UnsafeRawBufferPointer, _ size: PixelSize) -> PictureBeginning? {
        var limits = ImageLimits()
        (limits.frames, limits.animationPixels) = (.max, .max)
        guard let frames = try? GIFFrameSource(bytes: bytes, limits: limits, isLenient: true),
            let frame = try? frames.next(), frames.frameCount > 0
        else { return nil }
        return PictureBeginning(frames.fillRows()) { try frame.pixels.picture() }
    }

    func patched(_ file: UnsafeRawBufferPointer) -> PatchedBytes? { PatchedBytes(growingScreenOf: file) }

    func headerFile(_ file: UnsafeRawBufferPointer) -> PatchedBytes? { PatchedBytes(singlePixelOf: file) }

    let sample = """
        R0lGODlhEAAQAIAAAEdwTMhkMiH/C05FVFNDQVBFMi4wAwEAAAAh+QQFAAAAACwAAAAAEAAQAAACDoyPqcvtD6OctNqLsz4FADs=
        """
}

private struct GIFSaver: FormatSaver {
    func bytesPerPixel(_ encoding: Encoding, effort: Int, hasAlpha: Bool) -> Int { 60 }
    func isWrittenByLibvips(_ picture: Picture) -> Bool { false }

    /// Written like an animation: with at most this many colours, and exactly if the picture has no more.
    func file(of picture: Picture, _ encoding: Encoding) throws(VipsFailure) -> EncodedFile {
        var bytes: [UInt8] = []
        do throws(Failure) {
            let pixels = try picture.pixelBuffer()
            let writer = try GIFWriter { bytes += $0 }
            let sink = try GIFFrameSink(
                writer, size: pixels.size, loopCount: 1, colours: encoding.colours,
                metadata: AnimationMetadata(ofPlain: picture))
            try sink.add(pixels, duration: 0)
            try sink.finish()
        } catch {
            throw VipsFailure(text: error.message)
        }
        return EncodedFile(bytes)
    }

    func animated(_ spec: VariantSpec) -> (any AnimationSaver)? {
        GIFAnimationSaver(strength: spec.options.whole(.colours) ?? ColourTable.maxCount)
    }
}

private struct GIFAnimationSaver: AnimationSaver {
    let strength: Int
    let weakest: Int? = 2
    let holdsProfile = false

    func begin(
        _ output: FileDescriptor, _ outline: AnimationOutline, strength: Int, _ metadata: AnimationMetadata,
    ) throws(Failure) -> any FrameSink {
        try GIFFrameSink(
            output, size: outline.size, loopCount: outline.loopCount, colours: strength, metadata: metadata)
    }
}

extension PatchedBytes {
    /// A GIF whose screen holds its first frame; nil if it does already, or if there is no frame.
    convenience init?(growingScreenOf gif: UnsafeRawBufferPointer) {
        let reader = ByteReader(gif)
        guard case .size(let width, let height) = GIFBlocks.canvas(reader),
            width != reader.little(2, at: 6) || height != reader.little(2, at: 8),
            let across = UInt16(exactly: width), let down = UInt16(exactly: height)
        else { return nil }
        self.init(gif)
        memory.storeBytes(of: across.littleEndian, toByteOffset: 6, as: UInt16.self)
        memory.storeBytes(of: down.littleEndian, toByteOffset: 8, as: UInt16.self)
    }

    /// A GIF with this one's screen and colours and a single pixel, which libvips opens if it cannot open the file.
    convenience init?(singlePixelOf gif: UnsafeRawBufferPointer) {
        let reader = ByteReader(gif)
        let end = 13 + GIFBlocks.colourTable(reader.byte(at: 10) ?? 0)
        guard reader.contains(0, length: end) else { return nil }
        let pixel: [UInt8] = [0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 0x01, 0, 0x3B]
        self.init(UnsafeRawBufferPointer(rebasing: gif[..<end]), pixel)
    }
}
