internal import CVips
internal import Core
import FoundationEssentials
import ImageFiles
import Variants

/// Loads, repairs and saves files of a built-in format, in a helper process. Its ``FormatHeader`` reads the signature and
/// the header.
///
/// Most requirements have a default, for a format that libvips decodes without special treatment.
protocol FormatDefinition: Sendable {
    var header: any FormatHeader { get }
    /// Sixteen by sixteen pixels of one colour, in base64, which tests that the decoder works. Made with libvips' own
    /// encoders if it has one.
    var sample: String { get }

    // MARK: - Header

    /// The failure for a header that is invalid in another way than by its size.
    func objection(_ reader: ByteReader, limits: ImageLimits) -> Failure?
    /// Bytes of a decoded pixel.
    var bytesPerPixel: Int { get }
    /// Whether the file is shorter than it states.
    func endsEarly(_ reader: ByteReader) -> Bool
    /// Nil for a still, and if animations of the format are not decoded.
    func animation(_ bytes: UnsafeRawBufferPointer) -> AnimationFacts?
    /// The number of frames in a file of which ``firstFrame(_:)`` decodes only the first; nil for a still.
    func frameCount(_ bytes: UnsafeRawBufferPointer) -> Int?

    // MARK: - Loader

    /// libvips' class that decodes it; all other classes are blocked. Nil if ``coder(takesBeginning:)`` decodes it.
    var loaderClass: String? { get }
    /// Names of ``ImagingRuntime/versions``.
    var libraries: [String] { get }
    /// Whether its library may load its codecs as plug-ins, with the first picture.
    var usesPlugins: Bool { get }
    /// A built-in decoder; nil if libvips decodes it.
    ///
    /// - Parameter takesBeginning: whether the pixels of a file that ends early are accepted.
    func coder(takesBeginning: Bool) -> (any ImageCoder)?
    /// The source from which libvips reads `bytes`.
    func source(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutablePointer<VipsSource>?
    /// - Parameter isLenient: whether pixels that cannot be decoded are left as ``emptySamples``.
    /// - Returns: as libvips' calls: 0, or −1 with a message in its error buffer.
    func load(
        _ source: UnsafeMutablePointer<VipsSource>, _ scale: DecodeScale, isLenient: Bool,
        _ result: inout UnsafeMutablePointer<VipsImage>?,
    ) -> CInt
    /// Adds the things that libvips 8.14 omits when it opens a file.
    func completed(_ picture: Picture, _ bytes: UnsafeRawBufferPointer) throws(VipsFailure) -> Picture
    /// The smallest scale at which a decoder should deliver a picture of `from` pixels for a result of `to` pixels. It
    /// depends on nothing else, so that a rendition does not depend on other variants.
    func scale(from: PixelSize, to: PixelSize) -> DecodeScale
    /// The damage of the decoded file that did not make libvips fail.
    ///
    /// - Parameters:
    ///   - watch: begun before the decode.
    ///   - loaded: the loader's picture, decoded by now.
    func damage(after watch: DecodeWatch, _ loaded: Picture, _ bytes: UnsafeRawBufferPointer) -> Failure?
    /// The first frame, if libvips does not deliver it as viewers show it: with the metadata that stay, and an alpha if
    /// the file has one. Nil if libvips delivers it.
    func firstFrame(_ file: OpenedFrames) throws(Failure) -> Picture?
    /// All frames of an animation; nil if the format's animations are not decoded.
    func frames(
        _ bytes: UnsafeRawBufferPointer, limits: ImageLimits, isLenient: Bool,
    ) throws(Failure) -> (any FrameSource)?
    /// Why libvips cannot decode a file, if its message does not say; nil if it does.
    func failure(_ bytes: UnsafeRawBufferPointer) -> Failure?
    /// The visible part of a file's first bytes; nil if nothing is visible yet.
    func preview(_ bytes: UnsafeRawBufferPointer, _ size: PixelSize) -> PictureBeginning?

    // MARK: - Repair

    /// A copy without the parts that make a library fail although browsers show the pixels: a GIF's screen, a PNG's
    /// texts.
    func patched(_ file: UnsafeRawBufferPointer) -> PatchedBytes?
    /// A copy of a damaged file from which a library decodes the pixels before the damage.
    func mended(_ file: UnsafeRawBufferPointer, limits: ImageLimits) -> PatchedBytes?
    /// A file from which the header of a damaged file is read, if libvips cannot open that.
    func headerFile(_ file: UnsafeRawBufferPointer) -> PatchedBytes?
    /// A copy whose EXIF, XMP, IPTC and texts are renamed to blocks that no library knows; profiles stay. Nil if the
    /// format's metadata cause no failures.
    func hidingMetadata(_ file: UnsafeRawBufferPointer) -> PatchedBytes?
    /// The pixels of a damaged file that libvips refuses; nil if there are none.
    func beginning(_ original: UnsafeRawBufferPointer, _ size: PixelSize) throws(VipsFailure) -> Picture?
    /// The samples that a lenient decoder leaves where data are missing; nil if libvips has no lenient decoder for the
    /// format.
    var emptySamples: ClosedRange<UInt8>? { get }

    // MARK: - Metadata and saver

    /// Whether the file has anything besides its pixels that a newly encoded variant would leave out and that libvips
    /// does not report. Anything that is not on the list of allowed parts counts; zeros after the end are padding.
    func hasExtras(_ reader: ByteReader, _ policy: MetadataPolicy) -> Bool
    /// Writes stills; nil if the format is not written.
    var saver: (any FormatSaver)? { get }
}

/// The rows of a picture that have arrived.
struct PictureBeginning {
    /// The visible rows; of a scaled picture accordingly fewer.
    let picture: Picture
    /// Their number, from the top, in the whole picture.
    let rows: Int

    /// Maximum side of a preview.
    static let side = 640

    /// The visible rows of a picture that was decoded to its end. Nil if there are none. Best effort: nil if decoding
    /// fails, since a preview is then skipped.
    ///
    /// - Parameter factor: by how much the decoded picture is smaller.
    init?(_ rows: Int, factor: Int = 1, of decoded: () throws -> Picture) {
        guard rows >= factor, let whole = try? decoded() else { return nil }
        let height = min(rows / factor, whole.storedSize.height)
        let size = PixelSize(width: whole.storedSize.width, height: height)
        guard let top = try? whole.then({ pw_vips_crop($0, &$1, 0, 0, CInt(size.width), CInt(size.height)) }).inMemory()
        else { return nil }
        (picture, self.rows) = (top, rows)
    }
}

/// A file that libvips has opened, for a decoder of its frames.
struct OpenedFrames {
    let bytes: UnsafeRawBufferPointer
    let header: Picture
    /// The result of ``FormatDefinition/frameCount(_:)``.
    let count: Int?
    let limits: ImageLimits
    let isLenient: Bool
}

extension FormatDefinition {
    var name: String { header.name }
    var sample: String { header.sample }

    func size(_ reader: ByteReader) -> HeaderFinding? { header.size(reader) }
    func cost(_ reader: ByteReader, limits: ImageLimits) -> DecoderCost { header.cost(reader, limits: limits) }
    func endsEarly(_ reader: ByteReader) -> Bool { header.endsEarly(reader) }
    func objection(_ reader: ByteReader, limits: ImageLimits) -> Failure? { nil }
    var bytesPerPixel: Int { 4 }
    func animation(_ bytes: UnsafeRawBufferPointer) -> AnimationFacts? { nil }
    func frameCount(_ bytes: UnsafeRawBufferPointer) -> Int? { nil }

    var libraries: [String] { ["vips"] }
    var usesPlugins: Bool { false }
    func coder(takesBeginning: Bool) -> (any ImageCoder)? { nil }
    func source(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutablePointer<VipsSource>? {
        vips_source_new_from_memory(bytes.baseAddress, bytes.count)
    }
    func completed(_ picture: Picture, _ bytes: UnsafeRawBufferPointer) throws(VipsFailure) -> Picture { picture }
    func scale(from: PixelSize, to: PixelSize) -> DecodeScale { .full }
    func damage(after watch: DecodeWatch, _ loaded: Picture, _ bytes: UnsafeRawBufferPointer) -> Failure? { nil }
    func firstFrame(_ file: OpenedFrames) throws(Failure) -> Picture? { nil }
    func frames(
        _ bytes: UnsafeRawBufferPointer, limits: ImageLimits, isLenient: Bool,
    ) throws(Failure) -> (any FrameSource)? { nil }
    func failure(_ bytes: UnsafeRawBufferPointer) -> Failure? { nil }
    func preview(_ bytes: UnsafeRawBufferPointer, _ size: PixelSize) -> PictureBeginning? { nil }

    func patched(_ file: UnsafeRawBufferPointer) -> PatchedBytes? { nil }
    func mended(_ file: UnsafeRawBufferPointer, limits: ImageLimits) -> PatchedBytes? { patched(file) }
    func headerFile(_ file: UnsafeRawBufferPointer) -> PatchedBytes? { nil }
    func hidingMetadata(_ file: UnsafeRawBufferPointer) -> PatchedBytes? { nil }
    func beginning(_ original: UnsafeRawBufferPointer, _ size: PixelSize) throws(VipsFailure) -> Picture? { nil }
    var emptySamples: ClosedRange<UInt8>? { nil }

    func hasExtras(_ reader: ByteReader, _ policy: MetadataPolicy) -> Bool { false }
    var saver: (any FormatSaver)? { nil }
}

/// A format that libvips does not decode: a coder of ours does.
protocol OwnFormatDefinition: FormatDefinition {}

extension OwnFormatDefinition {
    var loaderClass: String? { nil }
    var libraries: [String] { [] }
    // Always fails, since libvips does not decode the format.
    func load(
        _ source: UnsafeMutablePointer<VipsSource>, _ scale: DecodeScale, isLenient: Bool,
        _ result: inout UnsafeMutablePointer<VipsImage>?,
    ) -> CInt { -1 }
}

/// A format whose ``FormatHeader`` provides the decoder.
struct CodedFormat: OwnFormatDefinition {
    let header: any FormatHeader

    func coder(takesBeginning: Bool) -> (any ImageCoder)? { header.coder(takesBeginning: takesBeginning) }
}

extension FormatDefinition {
    var sampleBytes: [UInt8] {
        // If a constant were not base64, the tests would report that the format does not decode.
        [UInt8](Data(base64Encoded: sample.filter { !$0.isWhitespace }) ?? Data())
    }

    /// The failure of a decoder: `truncated` if the file ends too early, otherwise `bad-image`.
    func error(_ failure: VipsFailure, _ bytes: UnsafeRawBufferPointer) -> Failure {
        if let own = self.failure(bytes) { return own }
        return endsEarly(ByteReader(bytes))
            ? failure.error(.truncated, "The \(name) ends before its picture does")
            : failure.error(.badImage, "The \(name) cannot be decoded")
    }
}
