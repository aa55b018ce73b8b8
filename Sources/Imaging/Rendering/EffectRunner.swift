internal import CVips
internal import Core
import ImageFiles
import Variants

/// Applies a variant's effects to its picture, one after the other.
struct EffectRunner {
    /// The other pictures that effects name, decoded, upright and in web colours.
    let assets: [String: Picture]
    /// Maximum pixels of a picture between effects.
    let limits: ImageLimits
    /// The registered transforms that effects name.
    let extensions: ImagingExtensions

    /// - Throws: class `transform`, with the effect's name; `delegate` for a registered transform.
    func apply(_ effect: Effect, to picture: Picture) throws(Failure) -> Picture {
        let result = try effect.kind == .delegate ? delegated(effect, picture) : builtIn(effect, picture)
        let size = result.storedSize
        guard limits.objection(width: size.width, height: size.height) == nil else {
            throw Failure(
                .transform,
                "After '\(effect.kind.rawValue)' the picture would be \(size.width)×\(size.height) pixels, "
                    + "and the limit is \(limits.pixels) in all.",
            )
        }
        do throws(VipsFailure) {
            return try result.inMemory()
        } catch {
            throw error.error(.transform, "The effect '\(effect.kind.rawValue)' could not be applied")
        }
    }

    private func builtIn(_ effect: Effect, _ picture: Picture) throws(Failure) -> Picture {
        do throws(VipsFailure) {
            return try applied(effect, to: picture)
        } catch {
            throw error.error(.transform, "The effect '\(effect.kind.rawValue)' could not be applied")
        }
    }

    private func applied(_ effect: Effect, to picture: Picture) throws(VipsFailure) -> Picture {
        switch effect.kind {
        case .resize: picture
        case .crop, .trim, .rotate, .flip, .pad, .flatten, .round: try shaped(effect, picture)
        case .watermark: try watermarked(effect, picture)
        case .delegate, .command: throw VipsFailure(text: "it does not run in a helper")
        case .tint, .blur, .sharpen, .greyscale, .invert, .brightness, .contrast, .saturation, .gamma:
            try coloured(effect, picture)
        }
    }

    private func shaped(_ effect: Effect, _ picture: Picture) throws(VipsFailure) -> Picture {
        switch effect.kind {
        case .crop:
            try picture.cropped(
                left: effect.whole("left"), top: effect.whole("top"), width: effect.whole("width"),
                height: effect.whole("height"))
        case .trim: try picture.trimmed(threshold: effect.number("threshold"))
        case .rotate:
            try picture.rotated(
                by: effect.number("angle"), grows: effect.word("canvas") == "grow",
                background: effect.colour("background"))
        case .flip: try picture.flipped(effect.word("direction"))
        case .pad:
            try picture.padded(
                top: effect.whole("top"), right: effect.whole("right"), bottom: effect.whole("bottom"),
                left: effect.whole("left"), effect.colour("colour"))
        case .round:
            try picture.rounded(
                radius: effect.number("radius"), corners: effect.words("corners"), border: effect.number("border"),
                effect.colour("colour"))
        default: try picture.flattened(on: effect.colour("colour"))
        }
    }

    private func coloured(_ effect: Effect, _ picture: Picture) throws(VipsFailure) -> Picture {
        switch effect.kind {
        case .tint:
            try picture.tinted(effect.colour("colour"), blend: BlendMode(rawValue: effect.word("blend")) ?? .atop)
        case .blur: try picture.blurred(sigma: effect.number("sigma"))
        case .sharpen: try picture.sharpened(sigma: effect.number("sigma"), amount: effect.number("amount"))
        case .greyscale: try picture.inGreyscale()
        case .brightness: try picture.scaledColours(by: effect.number("factor"))
        case .contrast:
            try picture.scaledColours(by: effect.number("factor"), plus: 128 * (1 - effect.number("factor")))
        case .saturation: try picture.saturated(by: effect.number("factor"))
        case .gamma: try picture.withGamma(effect.number("exponent"))
        default: try picture.inverted()
        }
    }

    /// Scales the watermark to a share of the picture's width, and never beyond its bounds.
    private func watermarked(_ effect: Effect, _ picture: Picture) throws(VipsFailure) -> Picture {
        guard let mark = assets[effect.word("image")] else {
            throw VipsFailure(text: "its image '\(effect.word("image"))' was not handed over")
        }
        let canvas = picture.storedSize
        let box = PixelSize(
            width: max(1, Int((Double(canvas.width) * effect.number("scale")).rounded())), height: canvas.height)
        let placement = Placement(
            of: mark.storedSize, width: box.width, height: box.height, fit: .inside, enlarge: true)
        var small = try mark.asRGBA().resized(to: placement.output).inBytes()
        let opacity = effect.number("opacity")
        if opacity < 1 { small = try small.faded(to: opacity) }
        let share = (Gravity(rawValue: effect.word("position")) ?? .southEast).share
        let margin = effect.whole("margin")
        let place = (
            x: Self.place(share.x, canvas.width - placement.output.width, margin),
            y: Self.place(share.y, canvas.height - placement.output.height, margin)
        )
        let marked = try picture.asRGBA().composite(small, at: place)
        return picture.hasAlpha ? marked : try marked.then { pw_vips_first_bands($0, &$1, 3) }
    }

    private static func place(_ share: Double, _ room: Int, _ margin: Int) -> Int {
        let margin = min(margin, max(0, room / 2))
        return margin + Int((Double(room - 2 * margin) * share).rounded())
    }
}

extension EffectRunner {
    /// Calls a registered transform. Metadata stay unchanged.
    ///
    /// - Throws: class `delegate`.
    func delegated(_ effect: Effect, _ picture: Picture) throws(Failure) -> Picture {
        let name = effect.word("name")
        guard let transform = extensions.transform(named: name) else {
            throw Failure(.delegate, "There is no transform named '\(name)'.")
        }
        do throws(VipsFailure) {
            guard let image = try RGBAImage(picture) else { throw VipsFailure(text: "it has no pixels") }
            let result: RGBAImage
            do {
                result = try transform.transform(image, argument: effect.word("argument"))
            } catch {
                throw VipsFailure(text: "\(error)")
            }
            return try result.picture(from: picture)
        } catch {
            throw error.error(.delegate, "The transform '\(name)' failed")
        }
    }
}
