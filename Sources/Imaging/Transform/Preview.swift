public import Core
public import SystemPackage
import Variants

/// What can be seen of a picture that is still arriving.
public struct PreviewReport: Codable, Hashable, Sendable {
    public let format: ImageFormat
    /// Of the whole picture, in pixels, as stored.
    public let width: Int
    public let height: Int
    /// Rows from the top that the preview shows; 0 where there is none yet. A progressive JPEG shows all of them as
    /// soon as its first scan is whole, coarsely.
    public let rows: Int
}

/// Makes previews: of a progressive JPEG from the scans that are whole, of an interlaced PNG from what has come of its passes,
/// of any other JPEG, PNG, GIF or WebP from the rows that are complete. An animation shows its first frame.
///
/// Other formats only tell their size. Blocks, as ``Transformer`` does.
public struct PreviewMaker: Sendable {
    private let limits: ImageLimits

    public init(limits: ImageLimits) {
        self.limits = limits
    }

    /// - Parameters:
    ///   - source: a file whose first bytes are there.
    ///   - count: how many.
    ///   - output: open for writing, and empty: gets a WebP of the rows that are complete, if there are any.
    /// - Returns: nil where not even the size is known yet.
    /// - Throws: as ``Transformer/transform(_:into:assets:)``.
    public func preview(
        _ source: FileDescriptor, count: Int, into output: FileDescriptor,
    ) throws(Failure) -> PreviewReport? {
        try ImagingRuntime.start()
        return try SourceMapping(source).lend { bytes throws(Failure) in
            try preview(UnsafeRawBufferPointer(rebasing: bytes.prefix(count)), into: output)
        }
    }

    private func preview(
        _ bytes: UnsafeRawBufferPointer, into output: FileDescriptor,
    ) throws(Failure) -> PreviewReport? {
        guard let format = ImageFormat.sniff(bytes), let size = format.definition.size(ByteReader(bytes))?.pixelSize
        else {
            return nil
        }
        if let objection = limits.objection(width: size.width, height: size.height) { throw objection }
        guard format.definition.cost(ByteReader(bytes), limits: limits).objection(limits) == nil,
            let beginning = format.definition.preview(bytes, size)
        else {
            return PreviewReport(format: format, width: size.width, height: size.height, rows: 0)
        }
        do throws(VipsFailure) {
            let placement = Placement(
                of: beginning.picture.storedSize, width: PictureBeginning.side, height: PictureBeginning.side,
                fit: .inside, enlarge: false)
            let small = try beginning.picture.resized(to: placement.output).upright().inWebColours()
            try small.withMetadata(MetadataPolicy(VariantOptions()))
                .write(Encoding(.webp, quality: 60, VariantOptions()), to: output)
            return PreviewReport(format: format, width: size.width, height: size.height, rows: beginning.rows)
        } catch {
            throw error.error(.encode, "The preview could not be made")
        }
    }
}
