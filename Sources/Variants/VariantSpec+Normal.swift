// Specs that make the same rendition become equal: parts without an effect are removed, so that equal renditions have
// equal identities. Combinations of effects are not simplified: `blur:1,blur:1` keeps both.

extension VariantSpec {
    /// Removes the parts that change nothing.
    mutating func normalise() {
        effects.removeAll(where: \.isNeutral)
        normaliseBox()
        normaliseFormat()
        normaliseQuality()
        normaliseColours()
        normaliseAnimation()
    }

    private mutating func normaliseBox() {
        // If a side is empty, every fit has the same result; if both are empty, `enlarge` has no effect.
        let isBox = width != nil && height != nil
        if !isBox { fit = .inside }
        if width == nil, height == nil { enlarge = false }
        switch fit {
        case .cover: break
        // `contain` shows the whole picture, so there is no part to choose.
        case .contain: if position == .attention || position == .entropy { position = .centre }
        case .inside, .outside, .fill: position = .centre
        }
        normaliseResize()
    }

    /// Removes the resize from the list if it stands in its usual place or if there is no box.
    private mutating func normaliseResize() {
        guard let place = effects.firstIndex(where: { $0.kind == .resize }) else { return }
        let isUsual = place == effects.prefix { $0.kind.comesBeforeResize }.count
        let isAlone = effects.count { $0.kind == .resize } == 1
        if isAlone, isUsual || width == nil && height == nil { effects.remove(at: place) }
    }

    /// `auto` with one format becomes that format. With `lossless`, formats that cannot be lossless are removed.
    private mutating func normaliseFormat() {
        if format == nil, options.flag(.lossless), let candidates = options.candidates {
            options.set(.auto, .words(candidates.filter { $0 != .jpeg }.map(\.rawValue).sorted()))
        }
        guard format == nil, let candidates = options.candidates, candidates.count == 1 else { return }
        format = candidates[0]
        options.set(.auto, nil)
    }

    /// The format, or the candidates of `auto`; nil if the source decides.
    private var possibleFormats: [Output]? { format.map { [$0] } ?? options.candidates }

    private mutating func normaliseQuality() {
        if format == .webp, let near = options.whole(.nearLossless), near == 100 || options.flag(.lossless) {
            options.set(.lossless, near == 100 ? .flag(true) : nil)
            if near == 100 { options.set(.nearLossless, nil) }
        }
        if let format, options.whole(.effort) == format.usualEffort { options.set(.effort, nil) }
        guard let given = quality, let formats = possibleFormats else { return }
        // Lossless encoding has no quality.
        let lossy = formats.filter { $0.defaultQuality != nil && !options.areLossless(for: $0) }
        // JPEG XL has no lower quality than 5 here.
        let least = lossy == [.jxl] ? max(given, 5) : given
        quality = lossy.allSatisfy { $0.defaultQuality == least } ? nil : least
    }

    private mutating func normaliseColours() {
        // Every possible format has alpha, so no background shows.
        if possibleFormats?.allSatisfy(\.hasAlpha) == true { options.set(.background, nil) }
        guard let format else { return }
        switch format {
        case .png:
            guard let colours = options.whole(.colours) else { return options.set(.effort, nil) }
            options.set(.colours, .number(Double([256, 16, 4].first { $0 <= colours } ?? 2)))
        case .gif:
            // GIF has only one effort, and accepts the option so that variants written for other formats work.
            options.set(.effort, nil)
            // GIF cannot store a profile, and its colours are always sRGB.
            options.set(.keepProfile, nil)
            if options.whole(.colours) == 256 { options.set(.colours, nil) }
        case .avif where options.flag(.lossless), .heic where options.flag(.lossless): options.set(.chroma, nil)
        case .heic: if options.word(.chroma) == "420" { options.set(.chroma, nil) }
        // With `max-bytes` the quality is not known in advance.
        case .jpeg where options.whole(.maxBytes) == nil, .avif where options.whole(.maxBytes) == nil:
            let isFull = (quality ?? format.defaultQuality ?? 0) >= Output.fullChromaQuality
            if options.word(.chroma) == (isFull ? "444" : "420") { options.set(.chroma, nil) }
        default: break
        }
    }

    private mutating func normaliseAnimation() {
        let isStill = possibleFormats.map { !$0.contains(where: \.isAnimated) } ?? false
        // A command gets one picture, never an animation.
        let isCommanded = effects.contains { $0.kind == .command }
        if isStill || isCommanded { options.set(.decodeFirstFrameOnly, nil) }
        if isStill || isCommanded || effects.isEmpty || options.flag(.decodeFirstFrameOnly) {
            options.set(.transformAnimatedImage, nil)
        }
    }
}
