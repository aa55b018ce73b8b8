/// What went wrong with an image, as a class that decides whether it is tried again.
///
/// The class never comes from a library's words: libvips' text is only quoted in ``message``.
public struct ImagingError: Error, Codable, Hashable, Sendable, CustomStringConvertible {
    public enum Code: String, Codable, Sendable {
        /// The first bytes are no signature of a format that is decoded here.
        case notAnImage = "not-an-image"
        /// The signature is right and the rest is not: no decoder can use it.
        case badImage = "bad-image"
        /// The bytes end before the image does.
        case truncated
        /// More pixels, frames or bytes to decode than ``ImageLimits`` has, judged without decoding any.
        case tooManyPixels = "too-many-pixels"
        /// The image is fine, and what was asked of it could not be done.
        case transform
        /// A transform of the program's own, or a command, could not do what it was asked.
        case delegate
        /// The rendition could not be encoded, or not be written.
        case encode
    }

    public let code: Code
    /// One sentence of at most 500 characters, on one line.
    public let message: String

    public init(code: Code, message: String) {
        self.code = code
        self.message = Self.tidied(message)
    }

    public var description: String { "\(code.rawValue): \(message)" }

    static let longestMessage = 500

    /// A decoder may quote the file in its message, so what is in it is as hostile as the file.
    static func tidied(_ text: String) -> String {
        var kept = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.prefix(longestMessage * 2) {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned:
                kept.append(" ")
            default:
                kept.append(scalar)
            }
        }
        let words = String(kept).split(separator: " ").joined(separator: " ")
        guard words.count > longestMessage else { return words }
        return String(words.prefix(longestMessage - 1)) + "…"
    }
}
