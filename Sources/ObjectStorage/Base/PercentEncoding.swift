/// Percent-encoding as AWS Signature 4 wants it: of every byte except ASCII letters, digits and `-._~`, with
/// hexadecimal digits in upper case.
enum PercentEncoding {
    /// Slashes stay.
    static func path(_ text: String) -> String { encoded(text, keepsSlash: true) }

    static func query(_ text: String) -> String { encoded(text, keepsSlash: false) }

    /// Decodes; a `+` is a space, as in listings. Nil if an escape is incomplete, or if the bytes are not UTF-8.
    static func decoded(_ text: String) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            switch byte {
            case 43: bytes.append(32)
            case 37:
                guard let high = rest.popFirst().flatMap(value), let low = rest.popFirst().flatMap(value) else {
                    return nil
                }
                bytes.append(high << 4 | low)
            default: bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 48...57: digit - 48
        case 65...70: digit - 55
        case 97...102: digit - 87
        default: nil
        }
    }

    private static func encoded(_ text: String, keepsSlash: Bool) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            switch byte {
            case 48...57, 65...90, 97...122, 45, 46, 95, 126: bytes.append(byte)
            case 47 where keepsSlash: bytes.append(byte)
            default: bytes += [37, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
