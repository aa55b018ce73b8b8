internal import Core
import ImageFiles

/// A file whose header a library has read, and the bytes from which it is decoded.
///
/// The bytes are the file's own, unless something in it would make a library fail although browsers show the pixels:
/// broken or oversized metadata, or a GIF's screen that does not hold its first frame.
struct OpenedFile {
    let header: Picture
    let bytes: UnsafeRawBufferPointer
    /// Owns the bytes if they are not the file's own.
    let patch: PatchedBytes?
    /// Owns the bytes from which the header was read, if they are neither the file's nor the patch's.
    private let headerFile: PatchedBytes?

    /// - Parameter file: must stay valid as long as the picture, or one made from it, is used.
    init(
        _ file: UnsafeRawBufferPointer, _ format: ImageFormat, limits: ImageLimits, coders: CoderRegistry,
        isLenient: Bool = false,
    ) throws(Failure) {
        let definition = format.definition
        try Self.checkCost(file, definition, limits: limits, coders: coders)
        var patch = isLenient ? definition.mended(file, limits: limits) : definition.patched(file)
        headerFile = isLenient ? definition.headerFile(patch?.bytes ?? file) : nil
        do throws(VipsFailure) {
            header = try Picture(of: (headerFile ?? patch)?.bytes ?? file, as: definition, isLenient: isLenient)
        } catch {
            // Best effort: metadata are no reason to refuse pixels, so a failed try is followed by one without them.
            patch = definition.hidingMetadata(file)
            guard let readable = patch,
                let picture = try? Picture(of: readable.bytes, as: definition, isLenient: isLenient)
            else {
                throw definition.error(error, file)
            }
            header = picture
        }
        self.patch = patch
        bytes = patch?.bytes ?? file
        guard header.isOfColours else {
            throw Failure(
                .badImage, "The \(format.rawValue)'s samples are signed or complex numbers, not colours."
            )
        }
    }

    /// Checked before libvips opens the file, since some of its loaders allocate memory by the header.
    private static func checkCost(
        _ file: UnsafeRawBufferPointer, _ format: any FormatDefinition, limits: ImageLimits, coders: CoderRegistry,
    ) throws(Failure) {
        let reader = ByteReader(file)
        let verdict = HeaderInspector(limits: limits, coders: coders).inspect(file)
        if case .refuse(let error) = verdict, error.failureClass == .tooManyPixels { throw error }
        if let objection = format.cost(reader, limits: limits).objection(limits) { throw objection }
        if let objection = format.objection(reader, limits: limits) { throw objection }
    }
}
