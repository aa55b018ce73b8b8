internal import CPCRE

/// A regular expression that replaces parts of URLs. PCRE2 stops after a limited number of steps, since patterns and
/// URLs are untrusted, and some pairs of them would take practically forever.
///
/// Unchecked: a compiled pattern is read-only, which PCRE2 allows for any number of threads; each call has its own
/// match data.
final class KeyPattern: @unchecked Sendable {
    let text: String
    let replacement: String
    private let code: OpaquePointer

    /// Maximum steps of one search; a useful pattern takes a few for each character.
    private static let steps: UInt32 = 100_000
    /// Maximum replacements in one URL.
    private static let parts = 200

    struct Unreadable: Error {
        let reason: String
    }

    /// The search took too many steps.
    struct Endless: Error {}

    /// - Throws: the fault in the pattern, or the missing group that the replacement names.
    init(_ text: String, replacement: String) throws(Unreadable) {
        self.text = text
        self.replacement = replacement
        var (number, offset): (CInt, Int) = (0, 0)
        guard let code = pw_pcre_compile(text, text.utf8.count, &number, &offset) else {
            throw Unreadable(reason: "\(Self.explain(number)), at character \(offset)")
        }
        self.code = code
        let groups = Int(pw_pcre_groups(code))
        if let missing = Self.pieces(replacement).compactMap({ $0.group }).first(where: { $0 > groups }) {
            throw Unreadable(reason: "it has no group \(missing)")
        }
    }

    deinit { pw_pcre_free(code) }

    private static func explain(_ number: CInt) -> String {
        var text = [CChar](repeating: 0, count: 256)
        pw_pcre_explain(number, &text, text.count)
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Replaces every match, from left to right.
    ///
    /// - Throws: if the search takes too many steps.
    func replaced(in url: String) throws(Endless) -> String {
        guard let match = pw_pcre_new_match(code) else { throw Endless() }
        defer { pw_pcre_free_match(match) }
        let bytes = Array(url.utf8)
        let pieces = Self.pieces(replacement)
        var result: [UInt8] = []
        var (copied, position, count) = (0, 0, 0)
        while position <= bytes.count {
            let found = pw_pcre_match_from(code, url, bytes.count, position, Self.steps, match)
            if found == pw_pcre_no_match() { break }
            count += 1
            var (start, end) = (0, 0)
            guard found > 0, count <= Self.parts, pw_pcre_group(match, 0, &start, &end) != 0 else { throw Endless() }
            result += bytes[copied..<start]
            for piece in pieces {
                switch piece {
                case .text(let text): result += text
                case .group(let group):
                    var (first, last) = (0, 0)
                    if pw_pcre_group(match, CInt(group), &first, &last) != 0 { result += bytes[first..<last] }
                }
            }
            copied = end
            position = end
            // After an empty match, the next search starts after the next character.
            if start == end {
                position += 1
                while position < bytes.count, bytes[position] & 0xC0 == 0x80 { position += 1 }
            }
        }
        result += bytes[copied...]
        return String(decoding: result, as: UTF8.self)
    }

    private enum Piece {
        case text([UInt8])
        case group(Int)

        var group: Int? { if case .group(let number) = self { number } else { nil } }
    }

    /// `\1` to `\9` are groups; a backslash makes any other character literal.
    private static func pieces(_ replacement: String) -> [Piece] {
        var pieces: [Piece] = []
        var isEscaped = false
        for character in replacement {
            if isEscaped, character.isASCII, let number = character.wholeNumberValue {
                pieces.append(.group(number))
            } else if isEscaped || character != "\\" {
                pieces.append(.text(Array(String(character).utf8)))
            }
            isEscaped = !isEscaped && character == "\\"
        }
        return pieces
    }
}

extension KeyPattern: Hashable {
    static func == (a: KeyPattern, b: KeyPattern) -> Bool { (a.text, a.replacement) == (b.text, b.replacement) }

    func hash(into hasher: inout Hasher) {
        hasher.combine(text)
        hasher.combine(replacement)
    }
}
