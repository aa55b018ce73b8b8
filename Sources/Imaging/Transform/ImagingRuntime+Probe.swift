public import ImageFiles
import Variants

extension ImagingRuntime {
    /// The formats that work on this machine, tested with an image of each; empty if libvips cannot start.
    public static func supportedFormats() -> (decode: [ImageFormat], encode: [ImageFormat]) {
        // Best effort: start() itself reports the reason.
        guard (try? start()) != nil else { return ([], []) }
        return (
            ImageFormat.allCases.filter(decodes),
            VariantSpec.Output.allCases.filter(encodes).map(\.imageFormat),
        )
    }

    /// Makes every library load its plug-ins, which it otherwise loads with its first image. libheif's decoders and
    /// encoders may be plug-ins, and a process that can open no files would not find them.
    public static func loadPlugins() {
        // If a format does not work, the first image that needs it reports the error.
        for format in ImageFormat.allCases where format.definition.usesPlugins { _ = decodes(format) }
        for format in VariantSpec.Output.allCases where format.imageFormat.definition.usesPlugins {
            _ = encodes(format)
        }
    }

    private static func decodes(_ format: ImageFormat) -> Bool {
        SampleImage.bytes(of: format).withUnsafeBytes { bytes in
            // Best effort: the error would only repeat that it does not work.
            let source = try? DecodedSource(bytes, limits: ImageLimits())
            let size = try? source?.pixels(for: PixelSize(width: 16, height: 16)).storedSize
            return size?.pixels == 256
        }
    }

    private static func encodes(_ format: VariantSpec.Output) -> Bool {
        SampleImage.bytes(of: .png).withUnsafeBytes { bytes in
            // Best effort, as above. Into memory, since some encoders go back in their file, which a pipe does not allow.
            guard let picture = try? Picture(of: bytes, as: .png).inMemory() else { return false }
            return (try? picture.encoded(Encoding(format, quality: nil, VariantOptions()))) != nil
        }
    }
}
