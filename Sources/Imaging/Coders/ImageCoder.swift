internal import Core

/// Reads a format that is not read here, or reads one in another way; and writes it, if it likes.
///
/// The bytes come from strangers. ``decode(_:limits:)`` and ``encode(_:quality:)`` run in helper processes, whose crash
/// costs one image; ``sniff(_:)`` and ``header(of:)`` run in the worker as well, while a body still arrives, and must
/// not trap on anything. A coder is asked from several threads at once.
public protocol ImageCoder: Sendable {
    /// The format's name, as results show it: `farbfeld`.
    var name: String { get }
    /// Part of every rendition's identity: after a change of the version, renditions are made anew.
    var version: String { get }
    /// As in `image/x-farbfeld`.
    var mediaType: String { get }
    /// Without the dot.
    var fileExtension: String { get }
    /// The bytes that ``sniff(_:)`` needs to say; no body is refused for its signature before so many have come.
    var signatureLength: Int { get }

    /// Whether `prefix` begins like this format. A whole signature is asked for: what is said of a prefix of at least
    /// ``signatureLength`` bytes must not change with more of them.
    func sniff(_ prefix: UnsafeRawBufferPointer) -> Bool

    /// What the header says; nil while more bytes are needed.
    ///
    /// - Throws: any error for a header that can't be right. It is class `bad-image` unless it is an ``Failure``.
    func header(of prefix: UnsafeRawBufferPointer) throws -> ImageHeader?

    /// All pixels. The header's size was held to `limits` before; anything else that is allocated is held to them here.
    ///
    /// - Throws: class `truncated` where the bytes end early; anything else but an ``Failure`` is `bad-image`.
    /// - Returns: an image of the header's size.
    func decode(_ bytes: UnsafeRawBufferPointer, limits: ImageLimits) throws -> RGBAImage

    /// A file of this format, for a variant that names none and whose source was read by this coder.
    ///
    /// - Parameter quality: 1 to 100, or nil where the variant doesn't say.
    /// - Returns: nil where this format isn't written; the variant is PNG or JPEG then.
    func encode(_ image: RGBAImage, quality: Int?) throws -> [UInt8]?
}

extension ImageCoder {
    public func encode(_ image: RGBAImage, quality: Int?) throws -> [UInt8]? { nil }
}

/// What a coder found in a header. Files of several frames give their first.
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

// A registered coder's answers, held to what it promised.

extension AnimationCoder {
    /// Nil for a file that stands still.
    func checkedAnimation(
        in bytes: UnsafeRawBufferPointer, _ header: ImageHeader,
    ) throws(Failure) -> AnimationFacts? {
        let found: AnimationHeader?
        do {
            found = try animation(in: bytes)
        } catch {
            throw failure(error, "The \(name) can't be right")
        }
        guard let found else { return nil }
        guard found.frames > 0 else {
            throw Failure(.badImage, "The \(name) says that it has \(found.frames) frames.")
        }
        let canvas = PixelSize(width: header.width, height: header.height)
        return AnimationFacts(canvas: canvas, frames: found.frames, loopCount: min(max(0, found.loopCount), 65_535))
    }
}

extension ImageCoder {
    /// Nil while more bytes are needed.
    func checkedHeader(
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

    func checkedImage(
        of bytes: UnsafeRawBufferPointer, _ header: ImageHeader, limits: ImageLimits,
    ) throws(Failure) -> RGBAImage {
        let image: RGBAImage
        do {
            image = try decode(bytes, limits: limits)
        } catch {
            throw failure(error, "The \(name) cannot be decoded")
        }
        guard image.width == header.width, image.height == header.height else {
            throw Failure(
                .badImage,
                "The \(name) has \(image.width)×\(image.height) pixels, and its header says "
                    + "\(header.width)×\(header.height).")
        }
        return image
    }

    /// - Returns: nil where the format isn't written.
    func checkedFile(of image: RGBAImage, quality: Int?) throws(Failure) -> [UInt8]? {
        do {
            return try encode(image, quality: quality)
        } catch {
            throw Failure(.encode, "The \(name) cannot be encoded: \(error)")
        }
    }

    func failure(_ error: any Error, _ what: String) -> Failure {
        (error as? Failure) ?? Failure(.badImage, "\(what): \(error)")
    }
}
