internal import CVips
import SystemPackage

extension Picture {
    /// Encodes without metadata, and writes to `descriptor` from where it stands.
    func write(as format: VariantSpec.Output, quality: Int?, to descriptor: FileDescriptor) throws(VipsFailure) {
        // libvips works on a duplicate, and closes that.
        guard let target = vips_target_new_to_descriptor(descriptor.rawValue) else { throw VipsFailure.take() }
        defer { g_object_unref(target) }
        let quality = CInt(quality ?? format.defaultQuality ?? 0)
        let result = lend { image in
            switch format {
            case .jpeg: pw_vips_save_jpeg(image, target, quality)
            case .png: pw_vips_save_png(image, target)
            case .webp: pw_vips_save_webp(image, target, quality)
            case .avif: pw_vips_save_avif(image, target, quality)
            }
        }
        guard result == 0 else { throw VipsFailure.take() }
    }
}
