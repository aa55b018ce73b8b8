package import Variants

/// TIFF and BigTIFF. TIFF 6.0. Its size may stand anywhere in the file.
package struct TIFFHeader: FormatHeader {
    package let name = "tiff"
    package let fileExtension = "tif"
    /// No browser but Safari shows it, so PNG or JPEG suits better.
    package let keptFormat: VariantSpec.Output? = nil

    /// Both byte orders, classic (42) and BigTIFF (43).
    private static let signatures: [[UInt8]] = [
        [0x49, 0x49, 0x2A, 0x00], [0x4D, 0x4D, 0x00, 0x2A], [0x49, 0x49, 0x2B, 0x00], [0x4D, 0x4D, 0x00, 0x2B],
    ]

    package func begins(_ reader: ByteReader) -> Bool { Self.signatures.contains { reader.has($0, at: 0) } }
    package func mayBegin(_ reader: ByteReader) -> Bool { reader.mayBecome(Self.signatures) }
}
