package import Core
package import Variants

/// Reads the signature and the header of a built-in format. It decodes nothing, so the worker uses it while a file is
/// still arriving.
package protocol FormatHeader: Sendable {
    // MARK: - Names

    /// The name in results and variants.
    var name: String { get }
    /// The name for people.
    var title: String { get }
    /// Without the dot.
    var fileExtension: String { get }
    /// The format of a still variant that names none; nil if PNG or JPEG suits better.
    var keptFormat: VariantSpec.Output? { get }

    // MARK: - Signature

    /// Bytes that ``begins(_:)`` needs.
    var signatureLength: Int { get }
    /// Whether the signature is the name of a box, before which another format's signature may stand.
    var isInBoxes: Bool { get }
    /// Whether a file begins with the whole signature.
    func begins(_ reader: ByteReader) -> Bool
    /// Whether these bytes, which are too few to decide, may be the beginning of this format.
    func mayBegin(_ reader: ByteReader) -> Bool

    // MARK: - Header, limits and cost

    /// The size by the header, as stored. Nil for a format that may keep it anywhere in the file.
    func size(_ reader: ByteReader) -> HeaderFinding?
    /// Whether the format stays the same when more bytes come.
    func isDecided(_ reader: ByteReader) -> Bool
    /// The memory that its decoder needs besides the rows it delivers.
    func cost(_ reader: ByteReader, limits: ImageLimits) -> DecoderCost
    /// Whether the file is shorter than it states.
    func endsEarly(_ reader: ByteReader) -> Bool

    // MARK: - A decoder without a library

    /// The decoder of a format that needs no library; nil if ``ImageFormat`` has a definition in `Imaging`.
    ///
    /// - Parameter takesBeginning: whether the pixels of a file that ends early are accepted.
    func coder(takesBeginning: Bool) -> (any ImageCoder)?
    /// For a format with a ``coder(takesBeginning:)``: sixteen by sixteen pixels of one colour, in base64, which test
    /// the decoder.
    var sample: String { get }
}

extension FormatHeader {
    package var title: String { name.uppercased() }
    package var fileExtension: String { name }
    package var mediaType: String { "image/\(name)" }
    package var keptFormat: VariantSpec.Output? { VariantSpec.Output(rawValue: name) }
    package var signatureLength: Int { 12 }
    package var isInBoxes: Bool { false }
    package func size(_ reader: ByteReader) -> HeaderFinding? { nil }
    package func isDecided(_ reader: ByteReader) -> Bool { true }
    package func cost(_ reader: ByteReader, limits: ImageLimits) -> DecoderCost { DecoderCost() }
    package func endsEarly(_ reader: ByteReader) -> Bool { false }
    package func coder(takesBeginning: Bool) -> (any ImageCoder)? { nil }
    package var sample: String { "" }
}

/// The memory that a decoder needs besides the rows it delivers, estimated without decoding.
///
/// Decoders of plain JPEG, PNG and TIFF hold a few rows at any size. The others hold the whole picture, some more than
/// once, or a file can make them read it again and again. The numbers of bytes for a pixel are those measured in
/// helpers at 48 million pixels: 8.5 for HEIC, 8.1 for AVIF, 7 for JPEG XL, 4.9 for GIF, 8.2 for BMP.
package struct DecoderCost {
    /// Memory held at once, besides the requested pixels.
    package var bytes = 0
    /// How often the decoder reads the whole picture.
    package var scans = 1
    /// Frames that the decoder lists even if only the first is needed.
    package var frames = 1

    package init(bytes: Int = 0, scans: Int = 1, frames: Int = 1) {
        self.bytes = bytes
        self.scans = scans
        self.frames = frames
    }

    /// Headers may claim any size.
    package init(_ size: PixelSize?, each bytes: Int, frames: Int = 1) {
        let product = (size?.pixels ?? 0).multipliedReportingOverflow(by: bytes)
        self.init(bytes: product.overflow ? .max : product.partialValue, frames: frames)
    }

    /// The failure if the cost exceeds a limit.
    package func objection(_ limits: ImageLimits) -> Failure? {
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

    /// libwebp walks the list of frames again for each of them: 10,000 take a tenth of a second, 100,000 eight seconds.
    private static let listedFrames = 10
}
