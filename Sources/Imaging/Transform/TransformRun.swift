internal import SystemPackage

/// The making of one source's variants: a decode for those that stand still, another for those that move.
struct TransformRun {
    let source: DecodedSource
    let limits: ImageLimits
    let extensions: ImagingExtensions
    /// Pictures that effects name.
    let assets: [String: FileDescriptor]
    /// Whether frames that nobody wants may be damaged.
    let firstFrameSuffices: Bool

    /// - Returns: the facts, and a rendition for each plan in their order.
    func write(_ plans: [VariantPlan]) throws(ImagingError) -> TransformReport {
        if let animation = source.animation { try animation.checkEnd() }
        let runner = EffectRunner(assets: try decodedAssets(), limits: limits, extensions: extensions)
        var renditions: [Int: Rendition] = [:]
        let numbered = Array(plans.enumerated())
        let moving = numbered.filter(\.element.isMoving)
        let still = numbered.filter { !$0.element.isMoving }
        let (base, stills) = try writeStills(still.map(\.element), runner)
        for (index, rendition) in zip(still.map(\.offset), stills) { renditions[index] = rendition }
        for (index, rendition) in zip(moving.map(\.offset), try writeMoving(moving.map(\.element), runner)) {
            renditions[index] = rendition
        }
        if moving.isEmpty, !firstFrameSuffices { try checkFrames() }
        let seen: Picture = if let base { base } else { try source.pixels(for: [source.glimpse]) }
        return TransformReport(
            facts: try source.facts(with: seen),
            renditions: plans.indices.compactMap { renditions[$0] },
        )
    }

    /// Where no variant moves, what comes after an animation's first frame is decoded all the same: only that tells
    /// whether it is whole. Not where there is more than may be decoded.
    private func checkFrames() throws(ImagingError) {
        guard let animation = source.animation, animation.isWithin(limits) else { return }
        let frames = try source.frames(limits: limits)
        while try frames.next() != nil {}
    }

    private func writeMoving(
        _ plans: [VariantPlan], _ runner: EffectRunner,
    ) throws(ImagingError) -> [Rendition] {
        guard !plans.isEmpty else { return [] }
        return try AnimationTransformer(source, limits: limits, runner: runner).write(plans)
    }

    /// One decode serves all that want the same colours: sRGB's, or those of the source's own profile.
    ///
    /// - Returns: the pixels in sRGB too, if there was a decode to it.
    private func writeStills(
        _ plans: [VariantPlan], _ runner: EffectRunner,
    ) throws(ImagingError) -> (base: Picture?, [Rendition]) {
        var bases: [Bool: Picture] = [:]
        var renditions: [Rendition] = []
        for plan in plans {
            let keepsProfile = plan.metadata.keepsProfile
            if bases[keepsProfile] == nil {
                let sizes = plans.filter { $0.metadata.keepsProfile == keepsProfile }.map(\.neededSize)
                bases[keepsProfile] = try source.pixels(for: sizes, keepingProfile: keepsProfile)
            }
            guard let base = bases[keepsProfile] else { continue }
            renditions.append(try plan.write(from: base, runner))
        }
        return (bases[false], renditions)
    }

    private func decodedAssets() throws(ImagingError) -> [String: Picture] {
        var pictures: [String: Picture] = [:]
        for (name, file) in assets {
            do throws(ImagingError) {
                pictures[name] = try decoded(file)
            } catch {
                // It is not the source's fault, and nothing to blacklist it for.
                throw ImagingError(code: .transform, message: "The picture '\(name)': \(error.message)")
            }
        }
        return pictures
    }

    private func decoded(_ file: FileDescriptor) throws(ImagingError) -> Picture {
        try SourceMapping(file).lend { bytes throws(ImagingError) in
            let source = try DecodedSource(bytes, limits: limits, coders: extensions.coders)
            return try source.pixels(for: [PixelSize(width: source.facts.width, height: source.facts.height)])
        }
    }
}
