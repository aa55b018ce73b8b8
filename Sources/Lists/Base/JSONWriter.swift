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
