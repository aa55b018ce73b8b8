/// Walks through one JSON text and checks it (RFC 8259). Values that are passed on keep their bytes, so that numbers
/// stay as they were written.
struct JSONScanner {
    struct Invalid: Error {
        let message: String
    }

    private static let maxDepth = 64

    private let bytes: UnsafeRawBufferPointer
    private(set) var position = 0
    private var depth = 0

    /// Gives a scanner of a text that has to hold one value and nothing else.
    static func whole<R>(_ bytes: UnsafeRawBufferPointer, _ body: (inout JSONScanner) throws -> R) throws -> R {
        var scanner = JSONScanner(bytes)
        scanner.skipSpace()
        let result = try body(&scanner)
        scanner.skipSpace()
        guard scanner.position == bytes.count else { throw Invalid(message: "something follows the JSON value") }
        return result
    }

    private init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    /// The byte that comes next; nil at the end.
    var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    func text(of range: Range<Int>) -> String {
        String(decoding: UnsafeRawBufferPointer(rebasing: bytes[range]), as: UTF8.self)
    }

    mutating func skipSpace() {
        while let byte = next, byte == 32 || (9...10).contains(byte) || byte == 13 { position += 1 }
    }

    /// Passes over a value of any kind.
    ///
    /// - Returns: the place of its bytes.
    mutating func value() throws -> Range<Int> {
        let start = position
        switch next {
        case UInt8(ascii: "{"): try object { _, scanner in _ = try scanner.value() }
        case UInt8(ascii: "["): try array { scanner in _ = try scanner.value() }
        case UInt8(ascii: "\""): _ = try string()
        case UInt8(ascii: "t"): try word("true")
        case UInt8(ascii: "f"): try word("false")
        case UInt8(ascii: "n"): try word("null")
        default: try number()
        }
        return start..<position
    }

    /// Calls `body` for each member, at the beginning of its value, which `body` has to pass.
    mutating func object(_ body: (String, inout JSONScanner) throws -> Void) throws {
        try list(UInt8(ascii: "{"), UInt8(ascii: "}")) { scanner in
            let name = try scanner.string()
            scanner.skipSpace()
            try scanner.expect(UInt8(ascii: ":"), "there is no colon after a name")
            scanner.skipSpace()
            try body(name, &scanner)
        }
    }

    /// Calls `body` for each element, at its beginning.
    mutating func array(_ body: (inout JSONScanner) throws -> Void) throws {
        try list(UInt8(ascii: "["), UInt8(ascii: "]"), body)
    }

    private mutating func list(
        _ open: UInt8, _ close: UInt8, _ body: (inout JSONScanner) throws -> Void,
    ) throws {
        try expect(open, "'{' or '[' is expected here")
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.maxDepth else { throw Invalid(message: "it is nested too deeply") }
        skipSpace()
        if next == close {
            position += 1
            return
        }
        while true {
            try body(&self)
            skipSpace()
            guard next == UInt8(ascii: ",") else { break }
            position += 1
            skipSpace()
        }
        try expect(close, "a comma or the closing bracket is missing")
    }

    mutating func string() throws -> String {
        try expect(UInt8(ascii: "\""), "there is no string where one belongs")
        let start = position
        while let byte = next, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 32 { position += 1 }
        if next == UInt8(ascii: "\"") {
            position += 1
            return text(of: start..<position - 1)
        }
        var units = Array(bytes[start..<position])
        while let byte = next, byte != UInt8(ascii: "\"") {
            guard byte >= 32 else { throw Invalid(message: "a string holds a control character") }
            position += 1
            if byte == UInt8(ascii: "\\") { try escape(into: &units) } else { units.append(byte) }
        }
        try expect(UInt8(ascii: "\""), "a string does not end")
        return String(decoding: units, as: UTF8.self)
    }

    private mutating func escape(into units: inout [UInt8]) throws {
        guard let byte = next else { throw Invalid(message: "a string does not end") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): units.append(byte)
        case UInt8(ascii: "b"): units.append(8)
        case UInt8(ascii: "f"): units.append(12)
        case UInt8(ascii: "n"): units.append(10)
        case UInt8(ascii: "r"): units.append(13)
        case UInt8(ascii: "t"): units.append(9)
        case UInt8(ascii: "u"):
            var code = [try hexadecimal()]
            if UTF16.isLeadSurrogate(code[0]), next == UInt8(ascii: "\\"), position + 1 < bytes.count,
                bytes[position + 1] == UInt8(ascii: "u")
            {
                position += 2
                code.append(try hexadecimal())
            }
            units += Array(String(decoding: code, as: UTF16.self).utf8)
        default: throw Invalid(message: "a backslash is followed by '\(Character(UnicodeScalar(byte)))'")
        }
    }

    private mutating func hexadecimal() throws -> UInt16 {
        guard position + 4 <= bytes.count, let value = UInt16(text(of: position..<position + 4), radix: 16) else {
            throw Invalid(message: "\\u is not followed by four hexadecimal digits")
        }
        position += 4
        return value
    }

    private mutating func number() throws {
        let start = position
        let isPart: (UInt8) -> Bool = { (48...57).contains($0) || "+-.eE".utf8.contains($0) }
        while let byte = next, isPart(byte) { position += 1 }
        let digits = text(of: start..<position)
        guard !digits.isEmpty else { throw Invalid(message: "there is no value where one belongs") }
        guard digits.wholeMatch(of: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/) != nil else {
            throw Invalid(message: "'\(digits.prefix(20))' is no number")
        }
    }

    private mutating func word(_ word: String) throws {
        guard bytes[position...].starts(with: word.utf8) else {
            throw Invalid(message: "a word is not true, false or null")
        }
        position += word.utf8.count
    }

    private mutating func expect(_ byte: UInt8, _ message: String) throws {
        guard next == byte else { throw Invalid(message: message) }
        position += 1
    }
}

/// Writes strings as JSON.
enum JSONWriter {
    static func quoted(_ text: String) -> String {
        let needsNone = text.utf8.allSatisfy { $0 >= 32 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
        if needsNone { return "\"" + text + "\"" }
        var out: [UInt8] = [UInt8(ascii: "\"")]
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): out += [UInt8(ascii: "\\"), byte]
            case 10: out += Array("\\n".utf8)
            case 13: out += Array("\\r".utf8)
            case 9: out += Array("\\t".utf8)
            case 0..<32: out += Array("\\u00".utf8) + [digit(byte >> 4), digit(byte & 15)]
            default: out.append(byte)
            }
        }
        out.append(UInt8(ascii: "\""))
        return String(decoding: out, as: UTF8.self)
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 48 + value : 87 + value }
}
