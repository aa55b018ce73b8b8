internal import Core
internal import FoundationEssentials

/// A checked value that a user gave to an effect or an encoder.
package enum ParameterValue: Hashable, Sendable {
    case flag(Bool)
    case number(Double)
    case word(String)
    /// Sorted, each once.
    case words([String])
    case colour(Colour)
    case text(String)

    /// The only spelling used in an identity.
    var canonical: String {
        switch self {
        case .flag(let value): value ? "yes" : "no"
        case .number(let value): Self.plain(value)
        case .word(let value): value
        case .text(let value): Self.escaped(value)
        case .words(let values): values.joined(separator: "+")
        case .colour(let value): value.text
        }
    }

    /// Escapes the text so that it cannot be read as the next effect.
    private static func escaped(_ text: String) -> String {
        text.unicodeScalars.map { scalar in
            scalar.value < 0x20 || "%(),".unicodeScalars.contains(scalar)
                ? (scalar.value < 0x10 ? "%0" : "%") + String(scalar.value, radix: 16) : String(scalar)
        }.joined()
    }

    private static func plain(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int(value)) : String(value)
    }
}

extension ParameterValue: Encodable {
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .flag(let value): try container.encode(value)
        case .number(let value) where value == value.rounded(): try container.encode(Int(value))
        case .number(let value): try container.encode(value)
        default: try container.encode(canonical)
        }
    }
}

/// The values that a parameter accepts, in the short form and in JSON.
package struct Parameter: Sendable {
    enum Kind: Sendable {
        case flag
        case whole(ClosedRange<Int>)
        case number(ClosedRange<Double>)
        case word([String])
        /// One or more, joined by `+`; or `all`.
        case words([String])
        case colour
        /// A colour without transparency.
        case opaqueColour
        case text
        /// The name of a registered coder, transform or command; no path.
        case name
        /// A text that may be empty.
        case argument
    }

    let name: String
    let kind: Kind
    /// Nil where a value must be given.
    let fallback: ParameterValue?

    init(_ name: String, _ kind: Kind, _ fallback: ParameterValue? = nil) {
        self.name = name
        self.kind = kind
        self.fallback = fallback
    }

    /// - Parameters:
    ///   - text: a value in the short form.
    ///   - owner: the effect or option that it belongs to, for messages: `blur`.
    func read(_ text: String, of owner: String) throws(VariantSpecError) -> ParameterValue {
        switch kind {
        case .flag:
            guard let value = ["yes": true, "true": true, "no": false, "false": false][text] else {
                throw wrong(text, owner)
            }
            return .flag(value)
        case .whole, .number:
            guard let value = Self.number(text) else { throw wrong(text, owner) }
            return try checked(value, shown: text, owner)
        case .word, .words, .colour, .opaqueColour, .text, .name, .argument:
            return try read(word: text, of: owner)
        }
    }

    func read(_ json: JSONValue, of owner: String) throws(VariantSpecError) -> ParameterValue {
        switch (kind, json) {
        case (.flag, .bool(let value)): return .flag(value)
        case (.whole, .integer(let value)), (.number, .integer(let value)):
            return try checked(Double(value), shown: "\(value)", owner)
        case (.whole, .number(let value)), (.number, .number(let value)):
            return try checked(value, shown: "\(value)", owner)
        case (.flag, _):
            throw VariantSpecError("\(label(owner)) must be true or false, not \(json.kind)")
        case (.word, .string(let value)), (.words, .string(let value)), (.colour, .string(let value)),
            (.opaqueColour, .string(let value)), (.text, .string(let value)), (.name, .string(let value)),
            (.argument, .string(let value)):
            return try read(word: value, of: owner)
        default: throw VariantSpecError("\(label(owner)) must be \(wanted), not \(json.kind)")
        }
    }

    private func read(word text: String, of owner: String) throws(VariantSpecError) -> ParameterValue {
        switch kind {
        case .word(let words) where words.contains(text):
            return .word(text)
        case .words(let words):
            let chosen = text == "all" ? Set(words) : Set(text.split(separator: "+").map(String.init))
            guard !chosen.isEmpty, chosen.isSubset(of: words) else { throw wrong(text, owner) }
            return .words(chosen.sorted())
        case .colour:
            guard let colour = Colour(text) else { throw wrong(text, owner) }
            return .colour(colour)
        case .opaqueColour:
            guard let colour = Colour(text), colour.alpha == 255 else { throw wrong(text, owner) }
            return .colour(colour)
        case .text where !text.isEmpty && text.utf8.count <= 4_096:
            return .text(text)
        case .name where Self.isName(text), .argument where text.utf8.count <= 4_096:
            return .text(text)
        default: throw wrong(text, owner)
        }
    }

    private static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.unicodeScalars.allSatisfy {
                $0.isASCII && ($0.properties.isAlphabetic || "0123456789._-".unicodeScalars.contains($0))
            }
    }

    /// Digits, a point and a sign; no exponents, no infinities.
    private static func number(_ text: String) -> Double? {
        guard text.utf8.allSatisfy({ "+-.0123456789".utf8.contains($0) }) else { return nil }
        return Double(text)
    }

    private func checked(_ value: Double, shown: String, _ owner: String) throws(VariantSpecError) -> ParameterValue {
        switch kind {
        case .whole(let range):
            guard value == value.rounded(), Double(range.lowerBound)...Double(range.upperBound) ~= value else { break }
            return .number(value)
        case .number(let range):
            guard range.contains(value) else { break }
            // -0 becomes 0.
            return .number(value == 0 ? 0 : value)
        default: break
        }
        throw wrong(shown, owner)
    }

    private func label(_ owner: String) -> String { owner == name ? "'\(name)'" : "'\(name)' of '\(owner)'" }

    private func wrong(_ text: String, _ owner: String) -> VariantSpecError {
        VariantSpecError("\(label(owner)) must be \(wanted), not '\(VariantSpecError.quoted(text))'\(hint(text))")
    }

    /// The nearest of the words that it may be.
    private func hint(_ text: String) -> String {
        var (words, known): ([String], [String]) = ([text], [])
        switch kind {
        // 'no' would be the nearest to 'on'.
        case .flag where text != "on": known = ["yes", "no", "true", "false"]
        case .word(let all): known = all
        case .words(let all): (words, known) = (text.split(separator: "+").map(String.init), all + ["all"])
        case .colour: known = ["white", "black", "transparent"]
        case .opaqueColour: known = ["white", "black"]
        default: break
        }
        let near = words.first { !known.contains($0) }.flatMap { NearestWord.find($0, among: known) }
        return near.map { "; did you mean '\($0)'?" } ?? ""
    }

    private var wanted: String {
        switch kind {
        case .flag: "yes or no"
        case .whole(let range): "a whole number between \(range.lowerBound) and \(range.upperBound)"
        case .number(let range):
            "a number between \(ParameterValue.number(range.lowerBound).canonical) and "
                + ParameterValue.number(range.upperBound).canonical
        case .word(let words): "one of \(words.joined(separator: ", "))"
        case .words(let words): "all, or one or more of \(words.joined(separator: ", ")), joined by '+'"
        case .colour: "a colour such as #ff8800, #ff880080, white or transparent"
        case .opaqueColour: "a colour without transparency such as #ff8800 or white"
        case .text: "a name of 1 to 4096 bytes"
        case .name: "a name of 1 to 64 ASCII letters, digits, '.', '_' and '-'"
        case .argument: "a text of at most 4096 bytes"
        }
    }
}
