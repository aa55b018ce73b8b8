internal import Core
internal import SystemPackage

/// The making of one source's variants: a decode for those that stand still, another for those that move.
struct TransformRun {
    let source: DecodedSource
    let limits: ImageLimits
    let extensions: ImagingExtensions
    /// Pictures that effects name.
    let assets: [String: FileDescriptor]
    /// Whether frames that no variant uses may be damaged.
    let firstFrameSuffices: Bool

    /// - Returns: the facts, and a rendition for each plan in their order.
    func write(_ plans: [VariantPlan]) throws(Failure) -> TransformReport {
        if let animation = source.animation, !source.isLenient { try animation.checkEnd() }
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
        let seen: Picture = if let base { base } else { try source.pixels(for: source.glimpse) }
        return TransformReport(
            facts: try source.facts(with: seen),
            renditions: plans.indices.compactMap { renditions[$0] },
        )
    }

    /// Where no variant moves, what comes after an animation's first frame is decoded all the same: only that tells
    /// whether it is whole. Not where there is more than may be decoded.
    private func checkFrames() throws(Failure) {
        guard let animation = source.animation, animation.isWithin(limits) else { return }
        let frames = try source.frames(limits: limits)
        while try frames.next() != nil {}
    }

    private func writeMoving(
        _ plans: [VariantPlan], _ runner: EffectRunner,
    ) throws(Failure) -> [Rendition] {
        guard !plans.isEmpty else { return [] }
        return try AnimationTransformer(source, limits: limits, runner: runner).write(plans)
    }

    /// Those that want the same colours, sRGB's or those of the source's own profile, are decoded together, as many as
    /// are not too much to hold.
    ///
    /// - Returns: pixels in sRGB too, if there was a decode to it.
    private func writeStills(
        _ plans: [VariantPlan], _ runner: EffectRunner,
    ) throws(Failure) -> (seen: Picture?, [Rendition]) {
        var seen: Picture?
        var renditions: [Int: Rendition] = [:]
        for keepsProfile in [false, true] {
            // A source that is passed on is decoded to see that it is whole, which those of others tell as well.
            let alike = plans.indices.filter { plans[$0].metadata.keepsProfile == keepsProfile }
            for passed in alike where plans[passed].isPassedThrough {
                renditions[passed] = try plans[passed].passThrough()
            }
            for group in groups(of: alike.filter { !plans[$0].isPassedThrough }, plans) {
                let bases = try source.pixels(for: group.map { plans[$0].neededSize }, keepingProfile: keepsProfile)
                for (index, base) in zip(group, bases) {
                    renditions[index] = try plans[index].write(from: base, runner)
                }
                guard !keepsProfile else { continue }
                for base in bases where base.storedSize.pixels > seen?.storedSize.pixels ?? 0 { seen = base }
            }
        }
        return (seen, plans.indices.compactMap { renditions[$0] })
    }

    /// Pixels that are held at a time, unless a single variant needs more.
    private static let mostHeld = 32 << 20

    /// By what one decode is to make, in their order.
    private func groups(of indices: [Int], _ plans: [VariantPlan]) -> [[Int]] {
        var groups: [[Int]] = []
        var held: Set<PixelSize> = []
        for index in indices {
            let size = plans[index].neededSize
            let total = held.union([size]).reduce(0) { $0 + $1.pixels }
            if groups.isEmpty || total > Self.mostHeld && !held.contains(size) {
                groups.append([])
                held = []
            }
            groups[groups.endIndex - 1].append(index)
            held.insert(size)
        }
        return groups
    }

    private func decodedAssets() throws(Failure) -> [String: Picture] {
        var pictures: [String: Picture] = [:]
        for (name, file) in assets {
            do throws(Failure) {
                pictures[name] = try decoded(file)
            } catch {
                // It is not the source's fault, and nothing to blacklist it for.
                throw Failure(.transform, "The picture '\(name)': \(error.message)")
            }
        }
        return pictures
    }

    private func decoded(_ file: FileDescriptor) throws(Failure) -> Picture {
        try SourceMapping(file).lend { bytes throws(Failure) in
            let source = try DecodedSource(bytes, limits: limits, coders: extensions.coders)
            return try source.pixels(for: PixelSize(width: source.facts.width, height: source.facts.height))
        }
    }
}
