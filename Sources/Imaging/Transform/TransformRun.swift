internal import Core
import ImageFiles
internal import SystemPackage

/// Makes the variants of one source: one decode for the stills, another for the animations.
struct TransformRun {
    let source: DecodedSource
    let limits: ImageLimits
    let extensions: ImagingExtensions
    /// The other pictures that effects name.
    let assets: [String: FileDescriptor]
    /// Whether frames that no variant uses may be damaged.
    let firstFrameSuffices: Bool

    /// - Returns: the facts, and a rendition for each plan, in order.
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

    /// If no variant is animated, the frames after the first are decoded anyway, since only that shows whether the
    /// animation is complete. Not if there are more frames than the limit.
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

    /// Variants with the same colours, sRGB or the source's own profile, share a decode, as many as memory allows.
    ///
    /// - Returns: a picture in sRGB, if one was decoded.
    private func writeStills(
        _ plans: [VariantPlan], _ runner: EffectRunner,
    ) throws(Failure) -> (seen: Picture?, [Rendition]) {
        var seen: Picture?
        var renditions: [Int: Rendition] = [:]
        for keepsProfile in [false, true] {
            // A source that is passed through is decoded to check that it is complete; the decode for another variant
            // checks that too.
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

    /// Maximum pixels that are held at a time, unless a single variant needs more.
    private static let maxHeld = 32 << 20

    /// The variants in groups, one decode each, in order.
    private func groups(of indices: [Int], _ plans: [VariantPlan]) -> [[Int]] {
        var groups: [[Int]] = []
        var held: Set<PixelSize> = []
        for index in indices {
            let size = plans[index].neededSize
            let total = held.union([size]).reduce(0) { $0 + $1.pixels }
            if groups.isEmpty || total > Self.maxHeld && !held.contains(size) {
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
                // The source is not at fault, and its URL must not be blacklisted.
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
