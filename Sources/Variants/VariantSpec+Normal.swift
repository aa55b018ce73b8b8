// One rendition, one spec: what says nothing beside the rest is taken out, so that an identity and what is made can't
// differ. Effects among each other are not simplified: `blur:1,blur:1` stays two.

extension VariantSpec {
    /// Takes out what changes nothing.
    mutating func normalise() {
        effects.removeAll(where: \.isNeutral)
        normaliseBox()
        normaliseFormat()
        normaliseQuality()
        normaliseColours()
        normaliseAnimation()
    }

    private mutating func normaliseBox() {
        // With a side empty every fit means the same, with both nothing is larger or smaller than the box.
        let isBox = width != nil && height != nil
        if !isBox { fit = .inside }
        if width == nil, height == nil { enlarge = false }
        switch fit {
        case .cover: break
        // There is nothing to choose: all of it is seen.
        case .contain: if position == .attention || position == .entropy { position = .centre }
        case .inside, .outside, .fill: position = .centre
        }
        normaliseResize()
    }

    /// Takes the resize out of the list where it stands in its usual place, or where there is no box.
    private mutating func normaliseResize() {
        guard let place = effects.firstIndex(where: { $0.kind == .resize }) else { return }
        let isUsual = place == effects.prefix { $0.kind.comesBeforeResize }.count
        let isAlone = effects.count { $0.kind == .resize } == 1
        if isAlone, isUsual || width == nil && height == nil { effects.remove(at: place) }
    }

    /// A choice of one is none. What can't be lossless isn't chosen where nothing may be lost.
    private mutating func normaliseFormat() {
        if format == nil, options.flag(.lossless), let candidates = options.candidates {
            options.set(.auto, .words(candidates.filter { $0 != .jpeg }.map(\.rawValue).sorted()))
        }
        guard format == nil, let candidates = options.candidates, candidates.count == 1 else { return }
        format = candidates[0]
        options.set(.auto, nil)
    }

    /// The format, or those that are chosen from; nil where the source decides.
    private var possibleFormats: [Output]? { format.map { [$0] } ?? options.candidates }

    private mutating func normaliseQuality() {
        if format == .webp, let near = options.whole(.nearLossless), near == 100 || options.flag(.lossless) {
            options.set(.lossless, near == 100 ? .flag(true) : nil)
            if near == 100 { options.set(.nearLossless, nil) }
        }
        if let format, options.whole(.effort) == format.usualEffort { options.set(.effort, nil) }
        guard let given = quality, let formats = possibleFormats else { return }
        // Of what is lossless no quality matters.
        let lossy = formats.filter { $0.defaultQuality != nil && !options.areLossless(for: $0) }
        // Below five JPEG XL has nothing lower.
        let least = lossy == [.jxl] ? max(given, 5) : given
        quality = lossy.allSatisfy { $0.defaultQuality == least } ? nil : least
    }

    private mutating func normaliseColours() {
        // What each may be written in has an alpha: nothing shows through.
        if possibleFormats?.allSatisfy(\.hasAlpha) == true { options.set(.background, nil) }
        guard let format else { return }
        switch format {
        case .png:
            guard let colours = options.whole(.colours) else { return options.set(.effort, nil) }
            options.set(.colours, .number(Double([256, 16, 4].first { $0 <= colours } ?? 2)))
        case .gif:
            // Ours has one only, and takes it in names that were written for others.
            options.set(.effort, nil)
            // It has no place for one, and its colours are always sRGB.
            options.set(.keepProfile, nil)
            if options.whole(.colours) == 256 { options.set(.colours, nil) }
        case .avif where options.flag(.lossless): options.set(.chroma, nil)
        // With a limit of bytes the quality isn't known.
        case .jpeg where options.whole(.maxBytes) == nil, .avif where options.whole(.maxBytes) == nil:
            let isFull = (quality ?? format.defaultQuality ?? 0) >= Output.fullChromaQuality
            if options.word(.chroma) == (isFull ? "444" : "420") { options.set(.chroma, nil) }
        default: break
        }
    }

    private mutating func normaliseAnimation() {
        let isStill = possibleFormats.map { !$0.contains(where: \.isAnimated) } ?? false
        // What goes to a command is one picture.
        let isCommanded = effects.contains { $0.kind == .command }
        if isStill || isCommanded { options.set(.decodeFirstFrameOnly, nil) }
        if isStill || isCommanded || effects.isEmpty || options.flag(.decodeFirstFrameOnly) {
            options.set(.transformAnimatedImage, nil)
        }
    }
}
