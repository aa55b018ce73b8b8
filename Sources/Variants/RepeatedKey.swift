internal import FoundationEssentials

/// Finds a key that occurs twice in an object of a JSON text; JSON decoders ignore one of the two silently.
enum RepeatedKey {
    /// - Parameter text: JSON that a decoder has accepted.
    static func first(in text: String) -> String? {
        // The keys of each open object; nil for an open array.
        var open: [Set<String>?] = []
        var bytes = text.utf8[...]
        var isKeyNext = false
        while let byte = bytes.first {
            switch byte {
            case UInt8(ascii: "{"):
                open.append([])
                isKeyNext = true
            case UInt8(ascii: "["):
                open.append(nil)
                isKeyNext = false
            case UInt8(ascii: "}"), UInt8(ascii: "]"): _ = open.popLast()
            case UInt8(ascii: ","): isKeyNext = open.last.flatMap(\.self) != nil
            case UInt8(ascii: "\""):
                let string = bytes.prefix(stringLength(bytes))
                if isKeyNext, let key = decoded(string), let last = open.indices.last {
                    guard open[last]?.insert(key).inserted ?? true else { return key }
                }
                isKeyNext = false
                bytes = bytes.dropFirst(string.count)
                continue
            default: break
            }
            bytes = bytes.dropFirst()
        }
        return nil
    }

    /// The length of a string with both of its quotes.
    private static func stringLength(_ bytes: Substring.UTF8View) -> Int {
        var length = 1
        var isEscaped = false
        for byte in bytes.dropFirst() {
            length += 1
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                break
            }
        }
        return length
    }

    /// Decodes a string literal. Best effort: the whole text was decoded before, so this never fails; nil would mean no
    /// key.
    private static func decoded(_ string: Substring.UTF8View) -> String? {
        try? JSONDecoder().decode(String.self, from: Data(string))
    }
}
