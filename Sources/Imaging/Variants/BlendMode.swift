/// How a tint's colour meets a picture's, channel by channel. Formulas of the W3C's Compositing and Blending Level 1.
enum BlendMode: String, CaseIterable {
    /// In place of it.
    case atop
    case multiply, screen, overlay, darken, lighten
    case colourDodge = "colour-dodge"
    case colourBurn = "colour-burn"
    case hardLight = "hard-light"
    case softLight = "soft-light"
    case difference, exclusion

    /// - Parameters: 0 to 1, as is what is returned.
    func mixed(_ below: Double, _ above: Double) -> Double {
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
