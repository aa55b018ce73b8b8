/// Makes texts from outside fit for one line of a message.
package enum MessageText {
    /// Characters of the longest message.
    package static let maxLength = 500

    /// Replaces control characters by spaces and cuts a long text. A library may quote a file in its message, so the
    /// text is as hostile as the file.
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

/// JSON that is passed on unchanged, with its numbers as they were written.
package enum JSONText {
    /// An object with one more member.
    ///
    /// - Parameters:
    ///   - value: valid JSON in one line; nil adds nothing.
    ///   - object: the text of an object that has members already.
    package static func adding(_ name: String, _ value: String?, to object: String) -> String {
        value.map { "\(object.dropLast()),\"\(name)\":\($0)}" } ?? object
    }
}
