package import Core

/// Reads, and optionally writes, a format that is not built in, or a built-in one in another way.
///
/// The bytes are untrusted. ``decode(_:limits:)`` and ``encode(_:quality:)`` run in helper processes, whose crash costs
/// one image. ``sniff(_:)`` and ``header(of:)`` also run in the worker, while a body arrives, and must not trap on any
/// input. A coder is called from several threads at once.
public protocol ImageCoder: Sendable {
    /// The format's name, as results show it: `farbfeld`.
    var name: String { get }
    /// Part of every rendition's identity: a new version makes new renditions.
    var version: String { get }
    /// Such as `image/x-farbfeld`.
    var mediaType: String { get }
    /// Without the dot.
    var fileExtension: String { get }
    /// The number of bytes that ``sniff(_:)`` needs. No body is refused by its signature before that many have come.
    var signatureLength: Int { get }

    /// Whether `prefix` begins like this format. The answer for a prefix of at least ``signatureLength`` bytes must not
    /// change when more bytes come.
    func sniff(_ prefix: UnsafeRawBufferPointer) -> Bool

    /// The facts in the header; nil if more bytes are needed.
    ///
    /// - Throws: any error for an invalid header. It is class `bad-image` unless it is a ``Failure``.
    func header(of prefix: UnsafeRawBufferPointer) throws -> ImageHeader?

    /// Decodes all pixels. The header's size was checked against `limits` before; this call must check any other
    /// allocation.
    ///
    /// - Throws: class `truncated` if the bytes end early; any error other than a ``Failure`` is `bad-image`.
    /// - Returns: an image of the header's size.
    func decode(_ bytes: UnsafeRawBufferPointer, limits: ImageLimits) throws -> RGBAImage

    /// Encodes a file of this format, for a variant that names no format and whose source this coder has read.
    ///
    /// - Parameter quality: 1 to 100, or nil if the variant names none.
    /// - Returns: nil if the coder does not write files; then the variant is PNG or JPEG.
    func encode(_ image: RGBAImage, quality: Int?) throws -> [UInt8]?
}

extension ImageCoder {
    public func encode(_ image: RGBAImage, quality: Int?) throws -> [UInt8]? { nil }
}

/// The facts in a header. For files of several frames, those of the first.
public struct ImageHeader: Hashable, Sendable {
    /// In pixels, upright.
    public var width: Int
    public var height: Int
    /// Whether there is an alpha channel, used or not.
    public var hasAlpha: Bool

    public init(width: Int, height: Int, hasAlpha: Bool) {
        self.width = width
        self.height = height
        self.hasAlpha = hasAlpha
    }
}

extension ImageCoder {
    /// Nil if more bytes are needed.
    package func checkedHeader(
        of prefix: UnsafeRawBufferPointer, limits: ImageLimits,
    ) throws(Failure) -> ImageHeader? {
        let found: ImageHeader?
        do {
            found = try header(of: prefix)
        } catch {
            throw failure(error, "The header of the \(name) can't be right")
        }
        if let found, let objection = limits.objection(width: found.width, height: found.height) { throw objection }
        return found
    }

    package func failure(_ error: any Error, _ what: String) -> Failure {
        (error as? Failure) ?? Failure(.badImage, "\(what): \(error)")
    }
}

/// Pixels of red, green, blue and alpha, a byte each, in sRGB and not premultiplied: row by row from the top, without
/// gaps.
public struct RGBAImage: Hashable, Sendable {
    public let width: Int
    public let height: Int
    /// Four bytes for each pixel.
    public var pixels: [UInt8] { didSet { assert(pixels.count == oldValue.count, "an image keeps its size") } }

    /// Nil if a side is not positive, or if `pixels` does not have four bytes for each pixel.
    public init?(width: Int, height: Int, pixels: [UInt8]) {
        guard width > 0, height > 0, width <= .max / 4 / height, pixels.count == width * height * 4 else { return nil }
        self.width = width
        self.height = height
        self.pixels = pixels
    }
}
