internal import ContentCache
internal import Core
internal import ImageFiles
internal import Jobs
internal import Logging
internal import Synchronization
internal import Variants

/// The renditions of one source that a job requests: found in the cache, or made and not published yet.
struct Rendered: Sendable {
    /// The source, with the facts from its pixels.
    let source: SourceRecord
    /// A record for each variant, in the job's order.
    let variants: [(spec: VariantSpec, record: VariantRecord)]
    let new: [VariantRecord]
    let blobs: [PendingBlob]

    /// Whether the source's bytes were read from the cache in memory.
    var isFromMemory = false

    /// Its renditions, the source among them if it is kept.
    func records(keepsOriginal: Bool) -> [RenditionRecord] {
        var renditions = variants.map { variant in
            RenditionRecord(
                name: variant.spec.name, blob: variant.record.blob, size: variant.record.size,
                format: variant.record.format, width: variant.record.width, height: variant.record.height,
            )
        }
        if keepsOriginal {
            renditions.append(
                RenditionRecord(
                    name: "original", blob: source.hash, size: source.size, format: source.format ?? "unknown",
                    width: source.width, height: source.height,
                ))
        }
        return renditions
    }
}

/// Finds the renditions of a source in the index, and has the missing ones made.
final class Renderer: Sendable {
    private let index: CacheIndex
    private let cache: any BlobStore
    private let assets: Assets
    private let maker: VariantMaker
    private let identities: IdentitySource
    private let logger: Logger
    private let shared = InFlightRenditions()

    init(
        index: CacheIndex, cache: any BlobStore, assets: Assets, maker: VariantMaker,
        identities: IdentitySource, logger: Logger,
    ) {
        self.index = index
        self.cache = cache
        self.assets = assets
        self.maker = maker
        self.identities = identities
        self.logger = logger
    }

    /// Every call is paired with one `leave`, after the item that used these bytes is recorded.
    func join(_ hash: String) { shared.join(hash) }
    func leave(_ hash: String) { shared.leave(hash) }

    /// Finds or makes all variants of a source.
    ///
    /// - Parameters:
    ///   - file: opens the source's bytes; called only if a pixel is needed.
    ///   - onUse: gets the bytes' hash before they are used, to `join` it.
    /// - Returns: nil if the cache no longer has the source's bytes; the index has been updated.
    func render(
        _ source: SourceRecord, _ plan: JobPlan, file: @Sendable () async throws(CacheError) -> BlobFile?,
        onUse: (String) -> Void,
    ) async throws(Failure) -> Rendered? {
        if let objection = identities.delegates.objection(to: plan.variants) { throw Failure(.delegate, objection) }
        let assets = try await assets.open(plan.assetNames)
        var work = Work(plan: plan, assets: assets, naming: try await identities.identities(for: plan), of: source)
        work.known = try await existing(work.identities)
        if work.known.count == work.identities.count, plan.isSatisfied(with: source) {
            return work.rendered(source)
        }
        // Items with the same bytes take turns; the second finds the renditions of the first.
        onUse(source.hash)
        await maker.helpers.turns.waiting { await shared.lock(source.hash) }
        defer { shared.unlock(source.hash) }
        work.known = try await existing(work.identities)
        let source = try await withKnownFacts(source, plan)
        let found = shared.found(source.hash).variants
        // If two names stand for one rendition, it is made once.
        for request in work.distinct where work.known[request.identity] == nil {
            if let made = found[request.identity] { work.made.append(made) } else { work.missing.append(request) }
        }
        if work.missing.isEmpty, plan.isSatisfied(with: source) { return work.rendered(source) }
        let opened: BlobFile?
        do throws(CacheError) {
            opened = try await file()
        } catch {
            return try await forget(source, after: error)
        }
        guard let opened else { return nil }
        return try await make(work, of: source, opened)
    }

    /// Whether all renditions of a source exist, so that its bytes are not needed.
    func hasAll(of source: SourceRecord, _ plan: JobPlan) async -> Bool {
        do throws(Failure) {
            let work = Work(
                plan: plan, assets: try await assets.open(plan.assetNames),
                naming: try await identities.identities(for: plan), of: source)
            return try await existing(work.identities).count == work.identities.count
        } catch {
            // Rendering them will report the error.
            return false
        }
    }

    // MARK: - The renditions of one source

    private struct RenditionRequest {
        let spec: VariantSpec
        let identity: String
    }

    private struct Work {
        let plan: JobPlan
        let assets: [String: Asset]
        let naming: RenditionIdentities
        private(set) var wanted: [RenditionRequest]
        let identities: Set<String>
        /// Renditions that the index knows, by identity.
        var known: [String: VariantRecord] = [:]
        /// Renditions made by this item or another item in flight.
        var made: [(VariantRecord, PendingBlob)] = []
        var missing: [RenditionRequest] = []

        init(plan: JobPlan, assets: [String: Asset], naming: RenditionIdentities, of source: SourceRecord) {
            self.plan = plan
            self.assets = assets
            self.naming = naming
            wanted = Self.wanted(of: source, plan, assets, naming)
            identities = Set(wanted.map(\.identity))
        }

        /// Renditions of a damaged source have identities of their own.
        mutating func nameAnew(for source: SourceRecord) { wanted = Self.wanted(of: source, plan, assets, naming) }

        private static func wanted(
            of source: SourceRecord, _ plan: JobPlan, _ assets: [String: Asset], _ naming: RenditionIdentities,
        ) -> [RenditionRequest] {
            plan.variants.map { RenditionRequest(spec: $0, identity: naming.identity(of: $0, source, assets)) }
        }

        /// The requests, one for each identity.
        var distinct: [RenditionRequest] {
            var seen: Set<String> = []
            return wanted.filter { seen.insert($0.identity).inserted }
        }

        func rendered(_ source: SourceRecord) -> Rendered {
            let all = made.reduce(into: known) { $0[$1.0.identity] = $1.0 }
            return Rendered(
                source: source,
                variants: wanted.compactMap { request in all[request.identity].map { (spec: request.spec, record: $0) }
                },
                new: made.map(\.0), blobs: made.map(\.1),
            )
        }
    }

    /// The variants that the index has and whose files exist.
    private func existing(_ identities: Set<String>) async throws(Failure) -> [String: VariantRecord] {
        do throws(JobsError) {
            let known = try await index.variants(identities: Array(identities))
            return known.filter { _, record in
                BlobHash(record.blob).map { cache.exists($0, size: record.size) } ?? false
            }
        } catch {
            throw Failure(error)
        }
    }

    /// The source with the facts that another item found in the same bytes, if this job needs them.
    private func withKnownFacts(_ source: SourceRecord, _ plan: JobPlan) async throws(Failure) -> SourceRecord {
        guard plan.decodes, !plan.isSatisfied(with: source) else { return source }
        var known = shared.found(source.hash).source
        do throws(JobsError) {
            if known == nil || known?.isUnverified == true { known = try await index.source(ofBytes: source.hash) }
        } catch {
            throw Failure(error)
        }
        guard let known, known.frames != nil else { return source }
        var source = source
        source.takeFacts(from: known)
        return source
    }

    private func make(_ work: Work, of source: SourceRecord, _ file: BlobFile) async throws(Failure) -> Rendered {
        let (report, blobs) = try await maker.make(
            work.missing.map(\.spec), of: file, work.assets, tolerance: work.plan.tolerance)
        let seen = source.with(report.facts)
        var work = work
        work.nameAnew(for: seen)
        if seen.isDamaged, !source.isDamaged, work.missing.count < work.distinct.count {
            (work.known, work.made, work.missing) = ([:], [], work.distinct)
            return try await make(work, of: seen, file)
        }
        let new = zip(zip(work.missing, report.renditions), blobs).map { pair, blob in
            (work.naming.record(of: pair.0.spec, pair.1, blob, seen, work.assets), blob)
        }
        shared.add(seen, new)
        work.made += new
        var rendered = work.rendered(seen)
        rendered.isFromMemory = file.isInMemory
        return rendered
    }

    /// Forgets a cached source whose bytes are damaged, so that it is fetched again.
    private func forget(_ source: SourceRecord, after error: CacheError) async throws(Failure) -> Rendered? {
        guard error.code == .damaged else { throw Failure(error) }
        logger.warning("A cached source is damaged and fetched again.", metadata: ["error": "\(error)"])
        do throws(JobsError) {
            try await index.forget(blobs: [source.hash])
            return nil
        } catch {
            throw Failure(error)
        }
    }
}
