internal import CVips
internal import Core
import ImageFiles
internal import SystemPackage
import Variants

/// Writes stills of a format, and animations if it has any.
protocol FormatSaver: Sendable {
    /// Bytes that its encoder holds for each pixel: see ``EncoderMemory``.
    func bytesPerPixel(_ encoding: Encoding, effort: Int, hasAlpha: Bool) -> Int
    /// The effort if none is named and ``VariantSpec/Output/usualEffort`` has none.
    func usualEffort(pixels: Int) -> Int
    /// Whether libvips' saver writes the whole file, so that it need not be held in memory.
    func isWrittenByLibvips(_ picture: Picture) -> Bool
    /// Runs libvips' saver; −1 if it has none for this format.
    func save(_ picture: Picture, _ encoding: Encoding, to target: UnsafeMutablePointer<VipsTarget>) -> CInt
    /// The whole file.
    func file(of picture: Picture, _ encoding: Encoding) throws(VipsFailure) -> EncodedFile
    /// Writes an animated variant; nil if the format has no animations.
    func animated(_ spec: VariantSpec) -> (any AnimationSaver)?
}

extension FormatSaver {
    func bytesPerPixel(_ encoding: Encoding, effort: Int, hasAlpha: Bool) -> Int { 8 }
    func usualEffort(pixels: Int) -> Int { 4 }
    func isWrittenByLibvips(_ picture: Picture) -> Bool { !picture.hasMetadata }
    func save(_ picture: Picture, _ encoding: Encoding, to target: UnsafeMutablePointer<VipsTarget>) -> CInt { -1 }
    func file(of picture: Picture, _ encoding: Encoding) throws(VipsFailure) -> EncodedFile {
        try EncodedFile { save(picture, encoding, to: $0) }
    }
    func animated(_ spec: VariantSpec) -> (any AnimationSaver)? { nil }
}

extension Picture {
    /// The option of libvips' savers that leaves metadata out.
    var strip: gboolean { hasMetadata ? 0 : 1 }

    /// Encodes, and writes to `descriptor` from its present offset.
    func write(_ encoding: Encoding, to descriptor: FileDescriptor) throws(VipsFailure) {
        guard encoding.saver.isWrittenByLibvips(self) else { return try encoded(encoding).write(to: descriptor) }
        try EncoderMemory.check(encoding, self)
        // libvips works on a duplicate, and closes that.
        guard let target = vips_target_new_to_descriptor(descriptor.rawValue) else { throw VipsFailure.take() }
        defer { g_object_unref(target) }
        guard encoding.saver.save(self, encoding, to: target) == 0 else { throw VipsFailure.take() }
    }

    func encoded(_ encoding: Encoding) throws(VipsFailure) -> EncodedFile {
        try EncoderMemory.check(encoding, self)
        return try encoding.saver.file(of: self, encoding)
    }
}

/// Checks the memory that encoders need against a helper's limit: an encoder without memory ends the helper, or writes
/// a file that is no picture (libaom through libheif 1.15).
///
/// Bytes for each pixel, including the picture itself and the overhead of allocators. Measured as the sizes at which
/// helpers succeeded and failed, and as the memory of `vips` for 7 to 48 million pixels (libvips 8.14, libjxl 0.7,
/// libheif 1.15 with libaom 3.6, libwebp 1.2.4).
enum EncoderMemory {
    /// The memory that a helper may allocate (1 GiB), without its own needs.
    static let maxBytes = 960 << 20

    /// - Throws: a message for the author of the variant, if the picture is too large for its encoder.
    static func check(_ encoding: Encoding, _ picture: Picture) throws(VipsFailure) {
        let size = picture.storedSize
        let effort = encoding.effort(pixels: size.pixels)
        let bytes = encoding.saver.bytesPerPixel(encoding, effort: effort, hasAlpha: picture.hasAlpha)
        if let text = objection(encoding.format.rawValue, size, bytesPerPixel: bytes) { throw VipsFailure(text: text) }
    }

    /// For the frames of an animation.
    static func check(_ format: String, _ size: PixelSize, bytesPerPixel: Int) throws(Failure) {
        guard let text = objection(format, size, bytesPerPixel: bytesPerPixel) else { return }
        throw Failure(.encode, "\(text).")
    }

    private static func objection(_ format: String, _ size: PixelSize, bytesPerPixel: Int) -> String? {
        let pixels = maxBytes / bytesPerPixel
        guard size.pixels > pixels else { return nil }
        return "\(size.width)×\(size.height) pixels are more than \(format) can be encoded of in a helper's memory, "
            + "some \(pixels / 1_000_000) million; ask for fewer, a lower effort, or another format"
    }
}

/// Writes animations of one format, for one variant.
protocol AnimationSaver: Sendable {
    /// Lowered until a file is small enough: WebP's quality, GIF's number of colours.
    var strength: Int { get }
    /// The lowest useful strength; nil if the format has none.
    var weakest: Int? { get }
    /// Whether the file can store a colour profile.
    var holdsProfile: Bool { get }

    /// By how much the encoder is slower than lossy WebP's: see ``AnimationOutline/cost(_:)``.
    func slowness(_ outline: AnimationOutline) -> Int

    /// - Parameter strength: at most ``strength``.
    /// - Throws: class `encode`, also if the animation is too large for the encoder.
    func begin(
        _ output: FileDescriptor, _ outline: AnimationOutline, strength: Int, _ metadata: AnimationMetadata,
    ) throws(Failure) -> any FrameSink
}

extension AnimationSaver {
    func slowness(_ outline: AnimationOutline) -> Int { 1 }
}
