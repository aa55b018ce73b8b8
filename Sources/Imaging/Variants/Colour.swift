/// A colour in sRGB with its alpha, 0 to 255 each.
public struct Colour: Hashable, Sendable {
    public var red: UInt8
    public var green: UInt8
    public var blue: UInt8
    public var alpha: UInt8

    public static let white = Colour(red: 255, green: 255, blue: 255, alpha: 255)
    public static let black = Colour(red: 0, green: 0, blue: 0, alpha: 255)
    public static let transparent = Colour(red: 0, green: 0, blue: 0, alpha: 0)

    public init(red: UInt8, green: UInt8, blue: UInt8, alpha: UInt8 = 255) {
        self.red = red
        self.green = green
        self.blue = blue
        self.alpha = alpha
    }

    /// `white`, `black`, `transparent`, or hexadecimal as CSS writes it, with or without the `#`: `#rgb`, `#rgba`,
    /// `#rrggbb`, `#rrggbbaa`.
    init?(_ text: String) {
        switch text.lowercased() {
        case "white": self = .white
        case "black": self = .black
        case "transparent": self = .transparent
        case let other: self.init(hexadecimal: other)
        }
    }

    private init?(hexadecimal text: String) {
        let digits = text.first == "#" ? text.dropFirst() : text[...]
        let values = digits.compactMap { $0.isASCII ? $0.hexDigitValue : nil }
        guard values.count == digits.count, [3, 4, 6, 8].contains(values.count) else { return nil }
        var bytes: [UInt8]
        if values.count < 5 {
            bytes = values.map { UInt8($0 * 17) }
        } else {
            bytes = stride(from: 0, to: values.count, by: 2).map { UInt8(values[$0] * 16 + values[$0 + 1]) }
        }
        if bytes.count == 3 { bytes.append(255) }
        self.init(red: bytes[0], green: bytes[1], blue: bytes[2], alpha: bytes[3])
    }

    /// `#rrggbbaa`, the one way it is written in an identity.
    var text: String {
        let digits = [red, green, blue, alpha].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
        return "#" + digits.joined()
    }
}
