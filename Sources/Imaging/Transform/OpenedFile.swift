/// A file that a library has opened for its header, and the bytes that it is to be decoded from.
///
/// They are the file's own but where something in it would keep a library from pixels that browsers show: metadata that
/// are broken or too large, and a GIF's screen that its first frame doesn't fit on.
struct OpenedFile {
    let header: Picture
    let bytes: UnsafeRawBufferPointer
    /// Has the bytes where they are not the file's.
    let patch: PatchedBytes?
    /// Has what the header was read from, where that is neither.
    private let stub: PatchedBytes?

    /// - Parameter file: must stay where it is as long as the picture, and what is made from it, is in use.
    init(
        _ file: UnsafeRawBufferPointer, _ format: ImageFormat, limits: ImageLimits, coders: CoderRegistry,
        isLenient: Bool = false,
    ) throws(ImagingError) {
        try Self.checkCost(file, format, limits: limits, coders: coders)
        var patch = isLenient ? Self.mended(file, format, limits) : Self.patch(file, format)
        stub = isLenient && format == .gif ? PatchedBytes(stubOf: patch?.bytes ?? file) : nil
        do throws(VipsFailure) {
            header = try Picture(of: (stub ?? patch)?.bytes ?? file, as: format, isLenient: isLenient)
        } catch {
            // Metadata are never a reason to refuse pixels.
            patch = PatchedBytes(hidingMetadataOf: file, format)
            guard let readable = patch, let picture = try? Picture(of: readable.bytes, as: format, isLenient: isLenient)
            else {
                throw DecodedSource.failure(error, file, format)
            }
            header = picture
        }
        self.patch = patch
        bytes = patch?.bytes ?? file
        guard header.isOfColours else {
            throw ImagingError(
                code: .badImage, message: "The \(format.rawValue)'s samples are signed or complex numbers, not colours."
            )
        }
    }

    /// Before libvips sees it: some of its loaders allocate by the header.
    private static func checkCost(
        _ file: UnsafeRawBufferPointer, _ format: ImageFormat, limits: ImageLimits, coders: CoderRegistry,
    ) throws(ImagingError) {
        let reader = ByteReader(file)
        let verdict = HeaderInspector(limits: limits, coders: coders).inspect(file)
        if case .refused(let error) = verdict, error.code == .tooManyPixels { throw error }
        if format == .tiff, let objection = TIFFColours(TIFFDirectory(reader)).objection { throw objection }
        if let objection = DecoderCost(file, as: format, limits: limits).objection(limits) { throw objection }
        if [.heic, .avif].contains(format), let objection = HEIFBoxes(reader).objection(limits) { throw objection }
    }

    /// So that a library shows what there is of a damaged file.
    private static func mended(
        _ file: UnsafeRawBufferPointer, _ format: ImageFormat, _ limits: ImageLimits,
    ) -> PatchedBytes? {
        switch format {
        case .webp: PatchedBytes(endingEarly: file)
        case .png: PatchedBytes(unlacing: file, most: limits.decoderBytes) ?? PatchedBytes(mendingPNG: file)
        default: patch(file, format)
        }
    }

    private static func patch(_ file: UnsafeRawBufferPointer, _ format: ImageFormat) -> PatchedBytes? {
        switch format {
        case .gif: PatchedBytes(growingScreenOf: file)
        case .png: PNGTexts.excess(ByteReader(file)).map { PatchedBytes(hidingTextsOf: file, from: $0) }
        case .jpeg, .webp, .tiff, .heic, .avif, .jxl, .bmp: nil
        }
    }
}
