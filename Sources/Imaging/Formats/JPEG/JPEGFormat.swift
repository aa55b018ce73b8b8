internal import CJPEG
internal import CVips
internal import Core
import ImageFiles
import Variants

/// JPEG, by libjpeg through libvips. ITU-T T.81.
struct JPEGFormat: FormatDefinition {
    let header: any FormatHeader = ImageFormat.jpeg.header
    let loaderClass: String? = "VipsForeignLoadJpegSource"
    let saver: (any FormatSaver)? = JPEGSaver()

    func hidingMetadata(_ file: UnsafeRawBufferPointer) -> PatchedBytes? { JPEGMetadata.hidden(in: file) }

    func hasExtras(_ reader: ByteReader, _ policy: MetadataPolicy) -> Bool {
        JPEGMetadata(policy: policy).areExtra(in: reader)
    }

    // MARK: - Loader

    /// A source that records how much of it the decoder read: see ``damage(after:_:_:)``.
    func source(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutablePointer<VipsSource>? {
        let end = JPEGScans.end(ByteReader(bytes))
        // libvips' buffer has 4,096 bytes. libvips fails if the end mark is missing, even if libjpeg's bit reader only
        // reads ahead, so the source adds the mark. Whether pixels are missing too is checked after decoding.
        return pw_vips_source_new(bytes.baseAddress, bytes.count, max(0, end - 4_096), end >= bytes.count ? 1 : 0)
    }

    func load(
        _ source: UnsafeMutablePointer<VipsSource>, _ scale: DecodeScale, isLenient: Bool,
        _ result: inout UnsafeMutablePointer<VipsImage>?,
    ) -> CInt {
        let factor: Int = if case .jpeg(let factor) = scale { factor } else { 1 }
        return pw_vips_load_jpeg(source, &result, CInt(factor), isLenient ? 1 : 0)
    }

    /// libjpeg's scaled blocks are too sharp, so at least a factor of two is left for the resize. libvips' thumbnails
    /// have the same rule and the same pixels.
    func scale(from: PixelSize, to: PixelSize) -> DecodeScale {
        let shrink = min(Double(from.width) / Double(to.width), Double(from.height) / Double(to.height))
        return shrink >= 16 ? .jpeg(8) : shrink >= 8 ? .jpeg(4) : shrink >= 4 ? .jpeg(2) : .full
    }

    func damage(after watch: DecodeWatch, _ loaded: Picture, _ bytes: UnsafeRawBufferPointer) -> Failure? {
        JPEGDamage.isSuspected(after: watch, loaded, of: bytes) ? JPEGDamage.objection(to: bytes) : nil
    }

    /// libjpeg fills missing data with a grey that rounding may change.
    let emptySamples: ClosedRange<UInt8>? = 126...130

    func preview(_ bytes: UnsafeRawBufferPointer, _ size: PixelSize) -> PictureBeginning? {
        if let end = ProgressiveJPEG(bytes)?.end {
            return beginning(UnsafeRawBufferPointer(rebasing: bytes[..<end]), size, rows: size.height)
        }
        guard let base = bytes.bindMemory(to: UInt8.self).baseAddress else { return nil }
        return beginning(bytes, size, rows: pw_jpeg_rows(base, bytes.count))
    }

    private func beginning(_ bytes: UnsafeRawBufferPointer, _ size: PixelSize, rows: Int) -> PictureBeginning? {
        let side = PictureBeginning.side
        let shown = Placement(of: size, width: side, height: side, fit: .inside, enlarge: false).scaled
        let scale = scale(from: size, to: shown)
        let factor = if case .jpeg(let factor) = scale { factor } else { 1 }
        return PictureBeginning(rows, factor: factor) {
            try (Array(bytes) + [0xFF, 0xD9]).withUnsafeBytes {
                try Picture(of: $0, as: self, scale: scale, isLenient: true).inMemory()
            }
        }
    }

    let sample = """
        /9j/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1xeXBkeFxlZ2P/2wBDARES
        EhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2P/wAARCAAQABADASIAAhEB
        AxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKB
        kaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKT
        lJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEB
        AQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYk
        NOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmq
        srO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6/9oADAMBAAIRAxEAPwBtFFFeWeyf/9k=
        """
}

private struct JPEGSaver: FormatSaver {
    func isWrittenByLibvips(_ picture: Picture) -> Bool { true }

    func save(_ picture: Picture, _ encoding: Encoding, to target: UnsafeMutablePointer<VipsTarget>) -> CInt {
        picture.lend {
            pw_vips_save_jpeg(
                $0, target, CInt(encoding.quality), encoding.isProgressive, encoding.chroma, picture.strip)
        }
    }
}
