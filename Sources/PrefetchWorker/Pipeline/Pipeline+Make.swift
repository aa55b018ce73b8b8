internal import ContentCache
internal import Imaging
internal import Jobs
internal import Logging

/// What a job's variants of one source came to.
struct Made: Sendable {
    /// The source, with the facts that its pixels told.
    let source: SourceRecord
    /// A record for each variant, in the job's order.
    let variants: [(spec: VariantSpec, record: VariantRecord)]
    let new: [VariantRecord]
    let blobs: [PendingBlob]

    func result(plan: JobPlan, isCached: Bool, original: PendingBlob?) -> ItemResult {
        var renditions = variants.map { variant in
            RenditionRecord(
                name: variant.spec.name, blob: variant.record.blob, size: variant.record.size,
                format: variant.record.format, width: variant.record.width, height: variant.record.height,
            )
        }
        var blobs = blobs
        if plan.keepsOriginal {
            renditions.append(
                RenditionRecord(
                    name: "original", blob: source.hash, size: source.size, format: source.format ?? "unknown",
                    width: source.width, height: source.height,
                ))
            if let original { blobs.append(original) }
        }
        let completion = Completion(source: source, renditions: renditions, newVariants: new, isCached: isCached)
        return ItemResult(kind: .ended(.done(completion)), blobs: blobs)
    }
}

enum MakeOutcome: Sendable {
    case made(Made)
    case failed(FetchFailure)
    /// Not the image's fault.
    case release(String?)
    /// The cache doesn't have the source's bytes any more; the index has been told.
    case sourceMissing
}

extension Pipeline {
    /// Finds or makes all variants of a source.
    ///
    /// - Parameter file: opens the source's bytes; asked only when a pixel is needed.
    func make(
        _ source: SourceRecord, _ plan: JobPlan, file: @Sendable () async throws(CacheError) -> BlobFile?,
        _ holdings: inout Holdings,
    ) async -> MakeOutcome {
        do {
            if let objection = delegates.objection(to: plan.variants) {
                return .failed(FetchFailure(failure: .delegate, message: objection))
            }
            let assets = try await assets.open(plan.assetNames)
            let wanted = wanted(of: source, plan, assets)
            var known = try await existing(wanted.map(\.identity))
            if known.count == Set(wanted.map(\.identity)).count, plan.isSatisfied(with: source) {
                return .made(collect(source, wanted, known, made: []))
            }
            // Whoever makes variants of these bytes does it alone; the second finds what the first has made.
            holdings.join(makings, source.hash)
            await helpers.turns.waiting { await sources.lock(source.hash) }
            defer { sources.unlock(source.hash) }
            known = try await existing(wanted.map(\.identity))
            let source = try await seen(source, plan)
            let shared = makings.found(source.hash).variants
            var made: [(VariantRecord, PendingBlob)] = []
            var missing: [Wanted] = []
            // Two names for one rendition are one piece of work.
            for wish in wanted.distinct where known[wish.identity] == nil {
                if let shared = shared[wish.identity] { made.append(shared) } else { missing.append(wish) }
            }
            if missing.isEmpty, plan.isSatisfied(with: source) {
                return .made(collect(source, wanted, known, made: made))
            }
            guard let file = try await file() else { return .sourceMissing }
            return await transform(source, plan, file, assets, wanted, known, made, missing)
        } catch let error as AssetError {
            return .failed(FetchFailure(failure: .transform, message: error.message))
        } catch let error as CacheError {
            return await sourceUnreadable(source, error)
        } catch {
            return .release("\(error)")
        }
    }

    private func wanted(of source: SourceRecord, _ plan: JobPlan, _ assets: [String: Asset]) -> [Wanted] {
        plan.variants.map { spec in
            (spec: spec, identity: identity(of: spec, source, assets))
        }
    }

    private func identity(of spec: VariantSpec, _ source: SourceRecord, _ assets: [String: Asset]) -> String {
        let coder = source.isDamaged ? coder + " damaged" : coder
        return variantIdentity(source: source.hash, spec: spec, coder: coder, assets: assets, delegates: delegates)
    }

    /// Whether all that a job makes of a source is there, so that its bytes aren't needed.
    func hasAll(of source: SourceRecord, _ plan: JobPlan) async -> Bool {
        do {
            let assets = try await assets.open(plan.assetNames)
            let identities = wanted(of: source, plan, assets).map(\.identity)
            return try await existing(identities).count == Set(identities).count
        } catch {
            // Whoever makes them will tell why.
            return false
        }
    }

    /// A source with what others have seen of the same bytes, where this one's pixels have to be seen.
    private func seen(_ source: SourceRecord, _ plan: JobPlan) async throws(JobsError) -> SourceRecord {
        guard plan.decodes, !plan.isSatisfied(with: source) else { return source }
        var known = makings.found(source.hash).source
        if known == nil || known?.isUnseen == true { known = try await store.source(ofBytes: source.hash) }
        guard let known, known.frames != nil else { return source }
        var source = source
        source.takeFacts(from: known)
        return source
    }

    private func transform(
        _ source: SourceRecord, _ plan: JobPlan, _ file: BlobFile, _ assets: [String: Asset], _ wanted: [Wanted],
        _ known: [String: VariantRecord], _ earlier: [(VariantRecord, PendingBlob)], _ missing: [Wanted],
    ) async -> MakeOutcome {
        switch await makeAll(missing.map(\.spec), of: file, assets, tolerance: plan.tolerance) {
        case .failed(let failure, let message):
            return .failed(FetchFailure(failure: failure, message: message))
        case .disk(let error):
            return .release(error.message)
        case .unavailable(let reason):
            return .release(reason)
        case .stopped, .preview, .undecided, .outgrown:
            return .release(nil)
        case .made(let report, let blobs):
            let wasDamaged = source.isDamaged
            var source = source
            source.format = report.facts.formatName
            source.width = report.facts.width
            source.height = report.facts.height
            source.frames = report.facts.frames
            source.hasAlpha = report.facts.hasAlpha
            source.looks = report.facts.placeholders.flatMap(SourceLooks.init) ?? source.looks
            source.looks?.damage = report.facts.damage.map { ImagingError(code: .badImage, message: $0).message }
            // What was made of a damaged source is none of the renditions that others look for.
            let wanted = self.wanted(of: source, plan, assets)
            if source.isDamaged, !wasDamaged, missing.count < wanted.distinct.count {
                return await transform(source, plan, file, assets, wanted, [:], [], wanted.distinct)
            }
            let made = zip(zip(missing, report.renditions), blobs).map { pair, blob in
                VariantRecord(
                    identity: identity(of: pair.0.spec, source, assets), source: source.hash,
                    spec: pair.0.spec.canonical, coder: coder,
                    blob: blob.hash.hex, size: blob.size, format: pair.1.formatName, width: pair.1.width,
                    height: pair.1.height,
                )
            }
            let new = Array(zip(made, blobs))
            makings.add(source, new)
            return .made(collect(source, wanted, known, made: earlier + new))
        }
    }

    typealias Wanted = (spec: VariantSpec, identity: String)

    private func collect(
        _ source: SourceRecord, _ wanted: [Wanted], _ known: [String: VariantRecord],
        made: [(VariantRecord, PendingBlob)],
    ) -> Made {
        let all = made.reduce(into: known) { $0[$1.0.identity] = $1.0 }
        return Made(
            source: source,
            variants: wanted.compactMap { wish in all[wish.identity].map { (spec: wish.spec, record: $0) } },
            new: made.map(\.0), blobs: made.map(\.1),
        )
    }

    /// The variants that the index knows and the disk has.
    private func existing(_ identities: [String]) async throws(JobsError) -> [String: VariantRecord] {
        let known = try await store.variants(identities: identities)
        return known.filter { _, record in
            BlobHash(record.blob).map { cache.exists($0, size: record.size) } ?? false
        }
    }

    private func sourceUnreadable(_ source: SourceRecord, _ error: CacheError) async -> MakeOutcome {
        guard error.code == .damaged else { return .release(error.message) }
        logger.warning("A cached source is damaged and fetched again.", metadata: ["error": "\(error)"])
        do {
            try await store.forget(blobs: [source.hash], in: collector.folder)
            return .sourceMissing
        } catch {
            return .release("\(error)")
        }
    }
}

extension [Pipeline.Wanted] {
    /// Without those that are another's identity again.
    fileprivate var distinct: [Element] {
        var seen: Set<String> = []
        return filter { seen.insert($0.identity).inserted }
    }
}
