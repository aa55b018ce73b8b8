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
            bytes = stride(from: 0, to: values.count, by: 2).map { place -> UInt8 in
                let value: Int = values[place] * 16 + values[place + 1]
                return UInt8(value)
            }
        }
        if bytes.count == 3 { bytes.append(255) }
        self.init(red: bytes[0], green: bytes[1], blue: bytes[2], alpha: bytes[3])
    }

    /// `#rrggbbaa`, the only spelling used in an identity.
    var text: String {
        let digits = [red, green, blue, alpha].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
        return "#" + digits.joined()
    }
}

/// How a tint's colour blends with a picture's, channel by channel. Formulas of the W3C's Compositing and Blending
/// Level 1.
package enum BlendMode: String, CaseIterable {
    /// Replaces the picture's colour.
    case atop
    case multiply, screen, overlay, darken, lighten
    case colourDodge = "colour-dodge"
    case colourBurn = "colour-burn"
    case hardLight = "hard-light"
    case softLight = "soft-light"
    case difference, exclusion

    /// - Parameters: 0 to 1, as is the result.
    package func mixed(_ below: Double, _ above: Double) -> Double {
        switch self {
        case .atop: above
        case .multiply: below * above
        case .screen: below + above - below * above
        case .overlay: Self.hardLight.mixed(above, below)
        case .darken: min(below, above)
        case .lighten: max(below, above)
        case .colourDodge: below == 0 ? 0 : above == 1 ? 1 : min(1, below / (1 - above))
        case .colourBurn: below == 1 ? 1 : above == 0 ? 0 : 1 - min(1, (1 - below) / above)
        case .hardLight:
            above <= 0.5
                ? Self.multiply.mixed(below, 2 * above) : Self.screen.mixed(below, 2 * above - 1)
        case .softLight: Self.softLight(below, above)
        case .difference: abs(below - above)
        case .exclusion: below + above - 2 * below * above
        }
    }

    private static func softLight(_ below: Double, _ above: Double) -> Double {
        guard above > 0.5 else { return below - (1 - 2 * above) * below * (1 - below) }
        let light = below <= 0.25 ? ((16 * below - 12) * below + 4) * below : below.squareRoot()
        return below + (2 * above - 1) * (light - below)
    }
}
