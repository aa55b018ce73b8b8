internal import Core

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
    ) throws(Failure) {
        let definition = format.definition
        try Self.checkCost(file, definition, limits: limits, coders: coders)
        var patch = isLenient ? definition.mended(file, limits: limits) : definition.patched(file)
        stub = isLenient ? definition.stub(patch?.bytes ?? file) : nil
        do throws(VipsFailure) {
            header = try Picture(of: (stub ?? patch)?.bytes ?? file, as: definition, isLenient: isLenient)
        } catch {
            // Metadata are never a reason to refuse pixels.
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

    /// Before libvips sees it: some of its loaders allocate by the header.
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
