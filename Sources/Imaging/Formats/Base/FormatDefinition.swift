internal import CVips
internal import Core
import FoundationEssentials
import Variants

/// Everything that is asked of a built-in format: how it is recognised, what its header says, what decoding costs, and
/// how it is loaded, mended and saved.
///
/// A format is a folder with a definition and a case of ``ImageFormat``. Most questions have a default answer, that of a
/// format which libvips decodes and nothing is special about.
protocol FormatDefinition: Sendable {
    // MARK: - Names

    /// As results show it, and variants.
    var name: String { get }
    /// As people write it.
    var title: String { get }
    /// Without the dot.
    var fileExtension: String { get }
    /// Sixteen by sixteen pixels of one colour, in base64: a decoder shows with it that it works. Made with libvips' own
    /// encoders where it has one.
    var sample: String { get }

    // MARK: - Signature

    /// Bytes that ``begins(_:)`` needs.
    var signatureLength: Int { get }
    /// The signature is a box's name, which any other format's may stand before.
    var isInBoxes: Bool { get }
    /// Whether a file begins with the whole signature.
    func begins(_ reader: ByteReader) -> Bool
    /// Whether these bytes, too few to say, may yet turn out to be this format.
    func mayBegin(_ reader: ByteReader) -> Bool

    // MARK: - Header, limits and cost

    /// The size by the header, as stored. Nil where a file may keep it anywhere, and where ``coder(takesBeginning:)``
    /// reads it.
    func size(_ reader: ByteReader) -> HeaderFinding?
    /// Whether more bytes can't make another format of it.
    func isDecided(_ reader: ByteReader) -> Bool
    /// What is wrong with its header besides the size, if anything.
    func objection(_ reader: ByteReader, limits: ImageLimits) -> Failure?
    /// What its decoder holds beside the rows it delivers.
    func cost(_ reader: ByteReader, limits: ImageLimits) -> DecoderCost
    /// Bytes that what is decoded takes for a pixel.
    var bytesPerPixel: Int { get }
    /// Whether the file is shorter than it says.
    func endsEarly(_ reader: ByteReader) -> Bool
    /// Nil where the format has no animation that is decoded here, and where the file is none.
    func animation(_ bytes: UnsafeRawBufferPointer) -> AnimationFacts?
    /// The frames of a file of which ``firstFrame(_:)`` decodes the first alone; nil for a still.
    func frameCount(_ bytes: UnsafeRawBufferPointer) -> Int?

    // MARK: - Loader

    /// libvips' class that decodes it: all others are blocked. Nil where ``coder(takesBeginning:)`` does.
    var loaderClass: String? { get }
    /// Names of ``ImagingRuntime/versions``.
    var libraries: [String] { get }
    /// Its library may load its codecs as plug-ins, with the first picture.
    var usesPlugins: Bool { get }
    /// A decoder of our own; nil where libvips decodes it.
    ///
    /// - Parameter takesBeginning: of a file that ends early the pixels until then are taken.
    func coder(takesBeginning: Bool) -> (any ImageCoder)?
    /// What libvips reads `bytes` from.
    func source(_ bytes: UnsafeRawBufferPointer) -> UnsafeMutablePointer<VipsSource>?
    /// - Parameter isLenient: what can't be decoded is left as ``emptySamples``.
    /// - Returns: as libvips' calls: 0, or −1 with the words in its error buffer.
    func load(
        _ source: UnsafeMutablePointer<VipsSource>, _ scale: DecodeScale, isLenient: Bool,
        _ result: inout UnsafeMutablePointer<VipsImage>?,
    ) -> CInt
    /// What libvips 8.14 leaves undone when it opens a file.
    func completed(_ picture: Picture, _ bytes: UnsafeRawBufferPointer) throws(VipsFailure) -> Picture
    /// The smallest a decoder should deliver for a picture of `from` pixels that is going to be `to`; nothing else
    /// decides it, so that a rendition is the same whatever else is asked for.
    func scale(from: PixelSize, to: PixelSize) -> DecodeScale
    /// What of the decoded file is damaged though libvips went on.
    ///
    /// - Parameters:
    ///   - watch: begun before the decode.
    ///   - loaded: as the loader delivered it, and decoded by now.
    func damage(after watch: DecodeWatch, _ loaded: Picture, _ bytes: UnsafeRawBufferPointer) -> Failure?
    /// The first frame where libvips doesn't deliver it as it is seen: with the metadata that stay, and an alpha where the
    /// file has one. Nil where libvips does.
    func firstFrame(_ file: OpenedFrames) throws(Failure) -> Picture?
    /// All frames of an animation; nil where none are decoded here.
    func frames(
        _ bytes: UnsafeRawBufferPointer, limits: ImageLimits, isLenient: Bool,
    ) throws(Failure) -> (any FrameSource)?
    /// Why libvips can't decode a file, where it doesn't say; nil where its own words do.
    func failure(_ bytes: UnsafeRawBufferPointer) -> Failure?
    /// What can be seen of the first bytes of a file; nil where that is nothing yet.
    func preview(_ bytes: UnsafeRawBufferPointer, _ size: PixelSize) -> PictureBeginning?

    // MARK: - Mending

    /// What keeps a library from pixels that browsers show, changed: a GIF's screen, a PNG's texts.
    func patched(_ file: UnsafeRawBufferPointer) -> PatchedBytes?
    /// What a library shows the pixels of a damaged file from, as far as they go.
    func mended(_ file: UnsafeRawBufferPointer, limits: ImageLimits) -> PatchedBytes?
    /// What the header of a damaged file is read from where libvips can't open it.
    func stub(_ file: UnsafeRawBufferPointer) -> PatchedBytes?
    /// EXIF, XMP, IPTC and texts become blocks that no library knows; profiles stay. Nil where the format's metadata are no
    /// reason to fail.
    func hidingMetadata(_ file: UnsafeRawBufferPointer) -> PatchedBytes?
    /// The pixels of a damaged file that libvips gives up on; nil where there are none.
    func beginning(_ original: UnsafeRawBufferPointer, _ size: PixelSize) throws(VipsFailure) -> Picture?
    /// The samples that a lenient decoder leaves where nothing has come; nil where libvips has no lenient decoder of it.
    var emptySamples: ClosedRange<UInt8>? { get }

    // MARK: - Metadata and saver

    /// Whether the file has anything besides its pixels that a variant leaves out when it is encoded anew, and that
    /// libvips tells nothing of: what may stay is listed, all else is taken for an extra. Zeros behind the end are padding.
    func hasExtras(_ reader: ByteReader, _ policy: MetadataPolicy) -> Bool
    /// Writes stills; nil where the format isn't written.
    var saver: (any FormatSaver)? { get }
    /// The format of a still variant that names none; nil where PNG or JPEG is the better one.
    var keptFormat: VariantSpec.Output? { get }
}

/// The rows of a picture that have arrived.
struct PictureBeginning {
    /// Them, or fewer of a smaller picture.
    let picture: Picture
    /// From the top, of the whole picture.
    let rows: Int

    /// What is shown is no larger than this.
    static let side = 640

    /// The rows of a picture that was decoded with others below them; nil where there are none, and where nothing can be
    /// decoded: a look that fails is none.
    ///
    /// - Parameter factor: how much smaller it was decoded.
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
    /// As ``FormatDefinition/frameCount(_:)`` said.
    let count: Int?
    let limits: ImageLimits
    let isLenient: Bool
}

extension FormatDefinition {
    var title: String { name.uppercased() }
    var fileExtension: String { name }
    var signatureLength: Int { 12 }
    var isInBoxes: Bool { false }

    func size(_ reader: ByteReader) -> HeaderFinding? { nil }
    func isDecided(_ reader: ByteReader) -> Bool { true }
    func objection(_ reader: ByteReader, limits: ImageLimits) -> Failure? { nil }
    func cost(_ reader: ByteReader, limits: ImageLimits) -> DecoderCost { DecoderCost() }
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
    func stub(_ file: UnsafeRawBufferPointer) -> PatchedBytes? { nil }
    func hidingMetadata(_ file: UnsafeRawBufferPointer) -> PatchedBytes? { nil }
    func beginning(_ original: UnsafeRawBufferPointer, _ size: PixelSize) throws(VipsFailure) -> Picture? { nil }
    var emptySamples: ClosedRange<UInt8>? { nil }

    func hasExtras(_ reader: ByteReader, _ policy: MetadataPolicy) -> Bool { false }
    var saver: (any FormatSaver)? { nil }
    var keptFormat: VariantSpec.Output? { VariantSpec.Output(rawValue: name) }
}

/// A format that libvips doesn't decode: its ``FormatDefinition/coder(takesBeginning:)`` does.
protocol OwnFormatDefinition: FormatDefinition {}

extension OwnFormatDefinition {
    var loaderClass: String? { nil }
    var libraries: [String] { [] }
    // libvips' way to it is blocked.
    func load(
        _ source: UnsafeMutablePointer<VipsSource>, _ scale: DecodeScale, isLenient: Bool,
        _ result: inout UnsafeMutablePointer<VipsImage>?,
    ) -> CInt { -1 }
}

extension FormatDefinition {
    var mediaType: String { "image/\(name)" }

    var sampleBytes: [UInt8] {
        // A constant that isn't base64 is a mistake the tests would show as a format that doesn't decode.
        [UInt8](Data(base64Encoded: sample.filter { !$0.isWhitespace }) ?? Data())
    }

    /// Whether a decoder failed because the file ends too early, in a class and a sentence.
    func error(_ failure: VipsFailure, _ bytes: UnsafeRawBufferPointer) -> Failure {
        if let own = self.failure(bytes) { return own }
        return endsEarly(ByteReader(bytes))
            ? failure.error(.truncated, "The \(name) ends before its picture does")
            : failure.error(.badImage, "The \(name) cannot be decoded")
    }
}

/// What a decoder would need beyond the rows it delivers, judged without decoding.
///
/// Those of plain JPEG, PNG and TIFF hold a few rows, whatever the picture's size; the others hold all of it, some more
/// than once, or can be made to go over the file again and again. Bytes for each pixel are what helpers were seen to
/// hold of 48 million: 8.5 of a HEIC, 8.1 of an AVIF, 7 of a JPEG XL, 4.9 of a GIF, 8.2 of a BMP.
struct DecoderCost {
    /// What is held at once, beside the pixels that are asked for.
    var bytes = 0
    /// How often the decoder goes over the picture.
    var scans = 1
    /// Frames that are listed even where only the first is wanted.
    var frames = 1

    init(bytes: Int = 0, scans: Int = 1, frames: Int = 1) {
        self.bytes = bytes
        self.scans = scans
        self.frames = frames
    }

    /// Headers may claim anything.
    init(_ size: PixelSize?, each bytes: Int, frames: Int = 1) {
        let product = (size?.pixels ?? 0).multipliedReportingOverflow(by: bytes)
        self.init(bytes: product.overflow ? .max : product.partialValue, frames: frames)
    }

    /// What is wrong with that, if anything.
    func objection(_ limits: ImageLimits) -> Failure? {
        if scans > limits.scans {
            return Failure(.tooManyPixels, "The picture comes in more than \(limits.scans) scans, which is the limit.")
        }
        if frames / Self.listedFrames > limits.frames {
            return Failure(
                .tooManyPixels, "The animation has \(frames) frames, too many to look for the first of them.")
        }
        guard bytes > limits.decoderBytes else { return nil }
        return Failure(
            .tooManyPixels,
            "Its decoder would hold \(bytes >> 20) MiB, and the limit is \(limits.decoderBytes >> 20) MiB.")
    }

    /// libwebp goes through the list of frames anew for each of them: 10,000 take a tenth of a second, 100,000 eight.
    private static let listedFrames = 10
}
