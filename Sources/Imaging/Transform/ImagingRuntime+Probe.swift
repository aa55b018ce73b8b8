import SystemPackage
import Variants

extension ImagingRuntime {
    /// What really works here, tried with an image of each format: empty when libvips doesn't start.
    public static func supportedFormats() -> (decode: [ImageFormat], encode: [ImageFormat]) {
        // start() itself says the reason.
        guard (try? start()) != nil else { return ([], []) }
        return (
            ImageFormat.allCases.filter(decodes),
            VariantSpec.Output.allCases.filter(encodes).map(\.imageFormat),
        )
    }

    /// Has every library load what it otherwise loads with its first image: libheif's decoders and encoders may be
    /// plug-ins, which a process that can't open files any more would never find.
    public static func loadPlugins() {
        // What doesn't work now will be said of the image that needs it.
        for format in ImageFormat.allCases where format.definition.usesPlugins { _ = decodes(format) }
        for format in VariantSpec.Output.allCases where format.imageFormat.definition.usesPlugins {
            _ = encodes(format)
        }
    }

    private static func decodes(_ format: ImageFormat) -> Bool {
        SampleImage.bytes(of: format).withUnsafeBytes { bytes in
            // The error would only say again that it doesn't work.
            let source = try? DecodedSource(bytes, limits: ImageLimits())
            let size = try? source?.pixels(for: PixelSize(width: 16, height: 16)).storedSize
            return size?.pixels == 256
        }
    }

    private static func encodes(_ format: VariantSpec.Output) -> Bool {
        SampleImage.bytes(of: .png).withUnsafeBytes { bytes in
            // As above. A pipe holds what so small a picture becomes; only whether the encoder gets that far is asked.
            guard let picture = try? Picture(of: bytes, as: .png).inMemory(), let pipe = try? FileDescriptor.pipe()
            else { return false }
            let encoding = Encoding(format, quality: nil, VariantOptions())
            let worked: Void? = try? picture.write(encoding, to: pipe.writeEnd)
            for end in [pipe.readEnd, pipe.writeEnd] { try? end.close() }
            return worked != nil
        }
    }
}
