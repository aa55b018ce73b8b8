/// One word or sign of a statement.
enum SQLToken: Hashable {
    /// A keyword or a name without quotes.
    case word(String)
    /// A string, a quoted name or a number, as it stands in the text.
    case literal(String)
    case sign(String)
    /// `?`, or `?3` with its number.
    case parameter(Int?)

    var text: String {
        switch self {
        case .word(let text), .literal(let text), .sign(let text): text
        case .parameter(let number): "$\(number ?? 0)"
        }
    }

    func `is`(_ keyword: String) -> Bool {
        guard case .word(let word) = self else { return false }
        return word.utf8.count == keyword.utf8.count && word.uppercased() == keyword
    }

    func isSign(_ sign: String) -> Bool { self == .sign(sign) }
}

/// Splits a statement into tokens; comments and white space go.
struct SQLTokens {
    private let bytes: [UInt8]
    private var position = 0

    static func of(_ sql: String) -> [SQLToken] {
        var reader = SQLTokens(bytes: Array(sql.utf8))
        var tokens: [SQLToken] = []
        while let token = reader.next() { tokens.append(token) }
        return tokens
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private static let signs = ["<>", "<=", ">=", "!=", "||", "<<", ">>", "->>", "->", "==", "::", "!~"].map {
        Array($0.utf8)
    }

    private mutating func next() -> SQLToken? {
        skipSpace()
        guard position < bytes.count else { return nil }
        let start = position
        switch bytes[start] {
        case UInt8(ascii: "'"), UInt8(ascii: "\""):
            skipQuoted()
            return .literal(text(from: start))
        case UInt8(ascii: "?"):
            position += 1
            skip { Self.isDigit($0) }
            return .parameter(Int(text(from: start + 1)))
        case let byte where Self.isDigit(byte):
            skip { Self.isDigit($0) || $0 == UInt8(ascii: ".") }
            if peek == UInt8(ascii: "e") || peek == UInt8(ascii: "E") {
                position += 1
                skip { Self.isDigit($0) }
            }
            return .literal(text(from: start))
        case let byte where Self.isLetter(byte):
            skip { Self.isLetter($0) || Self.isDigit($0) }
            return .word(text(from: start))
        default:
            let sign = Self.signs.filter { bytes[start...].starts(with: $0) }.max { $0.count < $1.count }
            position += sign?.count ?? 1
            return .sign(text(from: start))
        }
    }

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    private func text(from start: Int) -> String { String(decoding: bytes[start..<position], as: UTF8.self) }

    private mutating func skip(_ belongs: (UInt8) -> Bool) {
        while let byte = peek, belongs(byte) { position += 1 }
    }

    private mutating func skipSpace() {
        while let byte = peek {
            if byte == UInt8(ascii: "-"), bytes[position...].starts(with: [byte, byte]) {
                skip { $0 != UInt8(ascii: "\n") }
            } else if byte <= UInt8(ascii: " ") {
                position += 1
            } else {
                return
            }
        }
    }

    /// A quote within is doubled, so it reads as the end of one literal and the begin of another.
    private mutating func skipQuoted() {
        let quote = bytes[position]
        repeat {
            position += 1
            skip { $0 != quote }
            position += 1
        } while peek == quote
        position = min(position, bytes.count)
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) || byte == UInt8(ascii: "_") || byte >= 0x80
    }
}
