// Two ways of saying the same are one: what a parameter can't change beside the others is written in one way only.

extension Effect {
    /// The same effect, with the fallback for each parameter that means nothing here.
    var normalForm: Effect {
        switch kind {
        case .rotate: normalRotation
        case .flip where word("direction") == "both": .halfTurn
        case .round:
            with("colour", to: .colour(number("border") == 0 ? .black : colour("colour").visible))
                .with("corners", to: .words(number("radius") == 0 ? EffectKind.corners : words("corners")))
        case .pad: with("colour", to: .colour(colour("colour").visible))
        default: self
        }
    }

    private var normalRotation: Effect {
        let angle = number("angle").truncatingRemainder(dividingBy: 360)
        let upright = with("angle", to: .number(angle < 0 ? angle + 360 : angle))
            .with("background", to: .colour(colour("background").visible))
        guard angle.truncatingRemainder(dividingBy: 90) == 0 else { return upright }
        let keepsCanvas = angle.truncatingRemainder(dividingBy: 180) == 0
        guard keepsCanvas || word("canvas") == "grow" else { return upright }
        return upright.with("canvas", to: .word("grow")).with("background", to: .colour(.transparent))
    }

    /// Whether it leaves every picture as it is.
    var isNeutral: Bool {
        switch kind {
        case .rotate: number("angle") == 0
        case .brightness, .contrast, .saturation: number("factor") == 1
        case .gamma: number("exponent") == 1
        case .pad: ["top", "right", "bottom", "left"].allSatisfy { whole($0) == 0 }
        case .round: number("radius") == 0 && number("border") == 0
        case .sharpen: number("amount") == 0
        case .tint: colour("colour").alpha == 0
        case .watermark: number("opacity") == 0
        default: false
        }
    }
}

extension Colour {
    /// What can't be seen has no colour.
    fileprivate var visible: Colour { alpha == 0 ? .transparent : self }
}
