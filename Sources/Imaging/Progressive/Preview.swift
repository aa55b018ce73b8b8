public import SystemPackage

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

/// Makes previews: of a progressive JPEG from the scans that are whole, of a WebP from its complete rows.
///
/// Other formats only tell their size. Blocks, as ``Transformer`` does.
public struct PreviewMaker: Sendable {
    private let limits: ImageLimits

    /// The longest side of a preview, in pixels.
    static let side = 640

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
    ) throws(ImagingError) -> PreviewReport? {
        try ImagingRuntime.start()
        return try SourceMapping(source).lend { bytes throws(ImagingError) in
            try preview(UnsafeRawBufferPointer(rebasing: bytes.prefix(count)), into: output)
        }
    }

    private func preview(
        _ bytes: UnsafeRawBufferPointer, into output: FileDescriptor,
    ) throws(ImagingError) -> PreviewReport? {
        guard let format = ImageFormat.sniff(bytes), let size = Self.size(bytes, format) else { return nil }
        if let objection = limits.objection(width: size.width, height: size.height) { throw objection }
        guard let picture = Self.picture(bytes, format, size) else {
            return PreviewReport(format: format, width: size.width, height: size.height, rows: 0)
        }
        do throws(VipsFailure) {
            let rows = picture.storedSize.height
            let placement = Placement(
                of: picture.storedSize, width: Self.side, height: Self.side, fit: .inside, enlarge: false)
            let small = try picture.resized(to: placement.output).upright().inWebColours()
            try small.withMetadata(MetadataPolicy(VariantOptions()))
                .write(Encoding(.webp, quality: 60, VariantOptions()), to: output)
            return PreviewReport(format: format, width: size.width, height: size.height, rows: rows)
        } catch {
            throw error.error(.encode, "The preview could not be made")
        }
    }

    private static func size(_ bytes: UnsafeRawBufferPointer, _ format: ImageFormat) -> PixelSize? {
        guard case .size(let width, let height) = HeaderInspector.size(ByteReader(bytes), format) else { return nil }
        return PixelSize(width: width, height: height)
    }

    /// Nil where nothing can be seen yet; a failing decoder says no more than that.
    private static func picture(_ bytes: UnsafeRawBufferPointer, _ format: ImageFormat, _ size: PixelSize) -> Picture? {
        switch format {
        case .jpeg:
            guard let end = ProgressiveJPEG(bytes)?.end else { return nil }
            let whole = Array(bytes[..<end]) + [0xFF, 0xD9]
            return whole.withUnsafeBytes { try? Picture(of: $0, as: .jpeg).inMemory() }
        case .webp:
            guard let decoded = IncrementalWebP(bytes, width: size.width) else { return nil }
            return try? Picture(rgba: decoded.pixels, PixelSize(width: size.width, height: decoded.rows))
        default: return nil
        }
    }
}
