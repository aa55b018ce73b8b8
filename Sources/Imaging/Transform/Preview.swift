public import Core
public import ImageFiles
public import SystemPackage
import Variants

/// Makes previews: of a progressive JPEG from its complete scans, of an interlaced PNG from the passes that have come,
/// of any other JPEG, PNG, GIF or WebP from the complete rows. An animation shows its first frame.
///
/// Of other formats it reports only the size. Blocks, like ``Transformer``.
public struct PreviewMaker: Sendable {
    private let limits: ImageLimits

    public init(limits: ImageLimits) {
        self.limits = limits
    }

    /// - Parameters:
    ///   - source: a file with the first bytes of a picture.
    ///   - count: their number.
    ///   - output: open for writing, and empty: gets a WebP of the complete rows, if there are any.
    /// - Returns: nil if not even the size is known yet.
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
