/// Texts from outside, made fit for one line of a message.
package enum MessageText {
    /// Characters of the longest message.
    package static let maxLength = 500

    /// A library may quote a file in its message, so what is in it is as hostile as the file: control characters become
    /// spaces, and a longer text is cut.
    package static func tidied(_ text: String) -> String {
        var kept = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.prefix(maxLength * 2) {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned:
                kept.append(" ")
            default:
                kept.append(scalar)
            }
        }
        let words = String(kept).split(separator: " ").joined(separator: " ")
        guard words.count > maxLength else { return words }
        return String(words.prefix(maxLength - 1)) + "…"
    }
}
