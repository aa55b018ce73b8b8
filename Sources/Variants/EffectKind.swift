/// The kinds of effects, which change a picture besides resizing it to its box. The names are libvips' or SDWebImage's.
public enum EffectKind: String, CaseIterable, Hashable, Sendable {
    case crop, trim, resize, rotate, flip, round, tint, blur, sharpen, greyscale, invert
    case brightness, contrast, saturation, gamma, pad, flatten, watermark
    /// A transform that the embedding program registered; it runs in helpers.
    case delegate
    /// A program that the worker runs.
    case command

    /// Whether it is measured in the source's own pixels. Such effects at the head of a list are applied before the
    /// resize.
    var comesBeforeResize: Bool { self == .crop || self == .trim }

    /// Whether its result depends on the size of the picture that it is applied to.
    var dependsOnScale: Bool { comesBeforeResize }

    /// The parameters that are lengths in pixels.
    var lengths: Set<String> {
        switch self {
        case .crop: ["left", "top", "width", "height"]
        case .round: ["radius", "border"]
        case .blur: ["sigma"]
        case .pad: ["top", "right", "bottom", "left"]
        case .watermark: ["margin"]
        case .trim, .resize, .rotate, .flip, .tint, .sharpen, .greyscale, .invert, .brightness, .contrast, .saturation,
            .gamma, .flatten, .delegate, .command:
            []
        }
    }

    static let blendModes = BlendMode.allCases.map(\.rawValue)

    static let corners = ["bottom-left", "bottom-right", "top-left", "top-right"]

    /// In the order of the short form.
    var parameters: [Parameter] {
        let side = Parameter.Kind.whole(0...65_535)
        return switch self {
        case .crop:
            [
                Parameter("left", side), Parameter("top", side), Parameter("width", .whole(1...65_535)),
                Parameter("height", .whole(1...65_535)),
            ]
        case .trim: [Parameter("threshold", .number(0...255), .number(10))]
        case .resize, .greyscale, .invert: []
        case .rotate:
            [
                Parameter("angle", .number(-360...360)),
                Parameter("canvas", .word(["grow", "clip"]), .word("grow")),
                Parameter("background", .colour, .colour(.transparent)),
            ]
        case .flip:
            [Parameter("direction", .word(["horizontal", "vertical", "both"]), .word("horizontal"))]
        case .round:
            [
                Parameter("radius", .number(0...65_535)),
                Parameter("corners", .words(Self.corners), .words(Self.corners)),
                Parameter("border", .number(0...65_535), .number(0)), Parameter("colour", .colour, .colour(.black)),
            ]
        case .tint: [Parameter("colour", .colour), Parameter("blend", .word(Self.blendModes), .word("atop"))]
        case .blur: [Parameter("sigma", .number(0.3...250))]
        case .sharpen:
            [Parameter("sigma", .number(0.5...10), .number(0.5)), Parameter("amount", .number(0...100), .number(3))]
        case .brightness, .contrast, .saturation: [Parameter("factor", .number(0...100))]
        case .gamma: [Parameter("exponent", .number(0.1...10))]
        case .pad:
            [
                Parameter("top", side), Parameter("right", side), Parameter("bottom", side), Parameter("left", side),
                Parameter("colour", .colour, .colour(.transparent)),
            ]
        case .delegate, .command: [Parameter("name", .name), Parameter("argument", .argument, .text(""))]
        case .flatten: [Parameter("colour", .opaqueColour, .colour(.white))]
        case .watermark:
            [
                Parameter("image", .text),
                Parameter("position", .word(Gravity.allCases.map(\.rawValue)), .word(Gravity.southEast.rawValue)),
                Parameter("opacity", .number(0...1), .number(1)), Parameter("scale", .number(0.01...1), .number(0.25)),
                Parameter("margin", .whole(0...65_535), .number(0)),
            ]
        }
    }
}
