internal import ContentCache
internal import Core
internal import Download
internal import Jobs

/// Takes one item through the stages: lookup in the cache, otherwise a download; rendering; publishing.
///
/// Each item ends exactly once, through the publisher, also after an error.
final class ItemRun {
    private(set) var item: ClaimedItem
    private var plan: JobPlan
    private let stages: Stages
    /// Why the item's own columns cannot be used.
    private let problem: String?

    // Held until the item has ended.
    private var blobs: [PendingBlob] = []
    /// The shared fetch that the item has joined.
    private var fetchKey: String?
    /// The hash of the source whose renditions the item shares with other items in flight.
    private var sharedBytes: String?

    // Set in the course of the run.
    /// The request after the delegate's changes.
    private var request: DownloadRequest?
    private var lastTry: TryRecord?
    private(set) var measure = ItemMeasure()
    /// Whether the origin was asked; otherwise a failure does not count against its host.
    private var hasFetched = false

    init(_ item: ClaimedItem, _ plan: JobPlan, _ stages: Stages, problem: String? = nil) {
        self.item = item
        self.plan = plan
        self.stages = stages
        self.problem = problem
    }

    /// Runs the item to its end.
    ///
    /// - Parameter onMade: called once, when only publishing is left.
    /// - Returns: the ending that was written to the database; nil if none was.
    func run(onMade: @Sendable () -> Void = {}) async -> ItemEnding? {
        let ending = await ProcessTurns.$item.withValue(item.id) { await outcome().orFallBack(of: item) }
        onMade()
        let made = ContinuousClock.now
        let published = await stages.publisher.commit(lastTry.map(item.tried) ?? item, ending, blobs: blobs)
        measure.publishing = .now - made
        // Other items now find its renditions in the index, so that they need not be shared any longer.
        if let sharedBytes { stages.renderer.leave(sharedBytes) }
        if let fetchKey { stages.fetcher.leave(fetchKey, user: item.id) }
        return published
    }

    private func outcome() async -> ItemEnding {
        if let problem { return .failed(Failure(.invalidItem, problem)) }
        do throws(Failure) {
            plan = try await stages.delegate.changed(plan, item)
            var key = try await stages.delegate.key(of: item)
            if key == nil { key = try plan.key(of: item.url) }
            if let key { item = await stages.lookup.find(item, by: key) }
            item = item.withAcceptableSource()
        } catch {
            return stages.failures.ending(of: error, item, plan, afterFetch: false)
        }
        let ending: ItemEnding
        do throws(Failure) {
            if let cached = try await fromCache() { ending = cached } else { ending = try await fromNetwork() }
        } catch {
            ending = stages.failures.ending(of: error, item, plan, afterFetch: hasFetched)
        }
        if let stale = await staleSource(inPlaceOf: ending) { return stale }
        guard case .failed(let record) = ending else { return ending }
        return .failed(await stages.delegate.applyingBlacklistHook(to: record, item.url))
    }

    // MARK: - From the cache

    /// Ends the item from the cache, rendering missing variants from a cached source.
    ///
    /// - Returns: nil if the item needs the network.
    private func fromCache() async throws(Failure) -> ItemEnding? {
        guard !plan.options.contains(.fromLoaderOnly) else { return nil }
        guard let source = item.source else { return try await fromReadOnlyCache() }
        if try await hasToAsk(about: source) { return nil }
        return try await completed(from: source)
    }

    private func fromReadOnlyCache() async throws(Failure) -> ItemEnding? {
        var trouble: Failure?
        for other in stages.lookup.readOnly {
            guard let source = await stages.lookup.source(of: item.key, in: other), item.accepts(source),
                try await !hasToAsk(about: source)
            else { continue }
            do throws(Failure) {
                guard let original = try await stages.lookup.copy(of: source, from: other) else { continue }
                guard let rendered = try await render(source, { original.file }) else { continue }
                try plan.check(rendered.source)
                return done(rendered, original: original, from: .disk)
            } catch {
                // A stop or the disk is no fault of this source.
                guard error.failureClass.isOfItem else { throw error }
                // Another cache or the network may have a better source.
                trouble = trouble ?? error
            }
        }
        if let trouble, plan.options.contains(.fromCacheOnly) { throw trouble }
        return nil
    }

    private func hasToAsk(about source: SourceRecord) async throws(Failure) -> Bool {
        if plan.options.contains(.fromCacheOnly) { return false }
        switch stages.lookup.freshness(of: source, plan) {
        case .fresh: return false
        case .stale: return true
        case .forMatchingRequest: return stages.lookup.isStored(source, for: try await effectiveRequest()) == false
        }
    }

    /// Renders the missing variants of a source that the index knows.
    ///
    /// - Returns: nil if its bytes are missing, or if they have to be decoded and cannot be.
    private func completed(from source: SourceRecord) async throws(Failure) -> ItemEnding? {
        let isKept = stages.lookup.isThere(source)
        guard isKept || !plan.keepsOriginal, BlobHash(source.hash) != nil else { return nil }
        try plan.check(source)
        defer { stages.transfers.forget(item.id) }
        do throws(Failure) {
            let rendered = try await render(source) { [stages, item] () async throws(CacheError) in
                guard isKept, let file = try await stages.lookup.open(source) else { return nil }
                stages.transfers.begin(
                    item.id, item.url, from: file.isInMemory ? .memory : .disk, expected: source.size)
                stages.transfers.end(item.id, bytes: source.size)
                return file
            }
            guard let rendered else { return nil }
            return done(rendered, original: nil, from: rendered.isFromMemory ? .memory : .disk)
        } catch  where error.failureClass.isOfItem && plan.decodes(source) && !plan.options.contains(.fromCacheOnly) {
            // These bytes were stored without being decoded; the origin may have better ones.
            return nil
        }
    }

    /// Replaces an origin's failure by the cached source, for jobs with `stale-if-error`.
    private func staleSource(inPlaceOf ending: ItemEnding) async -> ItemEnding? {
        guard plan.options.contains(.staleIfError), !plan.options.contains(.fromLoaderOnly), let source = item.source,
            let failed = ending.failure, failed.failureClass.allowsStaleSource
        else { return nil }
        if plan.options.contains(.httpCache) {
            // Best effort: if the delegate fails here, the origin's failure stands.
            guard let request = try? await effectiveRequest(), stages.lookup.mayReplaceError(source, for: request)
            else {
                return nil
            }
        }
        do throws(Failure) {
            guard case .done(let completion) = try await completed(from: source) else { return nil }
            return .done(completion.concealing(failed))
        } catch {
            return stages.failures.ending(of: error, item, plan, afterFetch: false)
        }
    }

    // MARK: - From the network

    /// Fetches the item's URL, shared with other items that need it now, and renders its variants.
    private func fromNetwork() async throws(Failure) -> ItemEnding {
        if let refused = try await refused() { return refused }
        let request = try await effectiveRequest()
        let fetch = stages.fetcher.key(of: request, item)
        fetchKey = fetch
        let asked = ContinuousClock.now
        let outcome = await stages.fetcher.fetch(
            request, fetch, item, hasOwnPriority: plan.definition.hasOwnPriority)
        lastTry = TryRecord(outcome, at: stages.settings.now())
        measure.fetched(lastTry, elapsed: .now - asked, isOwn: stages.fetcher.isStarter(item.id, of: fetch))
        switch outcome {
        case .failed(let failure):
            hasFetched = true
            throw plan.isAlone(with: failure, request) ? failure.unlisted : failure
        case .notModified(let response):
            return try await confirmed(by: response, request)
        case .shed(let host):
            return try stages.hosts.ending(of: item, at: host) ?? stages.hosts.shed(host)
        case .body(let fetched, _):
            let source = try await stages.delegate.changed(fetched, item)
            hasFetched = true
            return try await rendered(source, request)
        }
    }

    /// The ending of an item that must not be fetched; nil if it may be.
    private func refused() async throws(Failure) -> ItemEnding? {
        if plan.options.contains(.fromCacheOnly) {
            return .failed(Failure(.notCached, "Not in the cache, and the job says from-cache-only."))
        }
        if !plan.options.contains(.retryFailed), let entry = item.blacklisting, stages.settings.limits.keeps(entry),
            !plan.mayGetAnotherAnswer(than: entry), try await !stages.delegate.overrules(entry)
        {
            return .blacklisted(entry)
        }
        guard try await stages.delegate.allows(item) else {
            return .failed(Failure(.denied, "The delegate refused the URL."))
        }
        return try stages.hosts.ending(of: item)
    }

    /// The item's request after the delegate's changes; the delegate is called once.
    private func effectiveRequest() async throws(Failure) -> DownloadRequest {
        if let request { return request }
        let validators = await validators()
        var request = stages.fetcher.request(for: item, plan, validators: validators)
        request = try await stages.delegate.changed(request, item)
        if let source = item.source, !stages.lookup.isVariant(source, of: request) { request.lastModified = nil }
        self.request = request
        return request
    }

    /// The source whose validators the request may send. A 304 must suffice: the source's bytes are in the cache, or
    /// everything that the job makes of them. If the bytes have to be decoded, they must be in the cache.
    private func validators() async -> SourceRecord? {
        guard !plan.options.contains(.fromLoaderOnly), let source = item.source, !plan.decodes(source) else {
            return nil
        }
        if stages.lookup.isThere(source) { return source }
        guard BlobHash(source.hash) != nil, !plan.keepsOriginal, plan.isSatisfied(with: source) else { return nil }
        return await stages.renderer.hasAll(of: source, plan) ? source : nil
    }

    private func confirmed(by response: DownloadResponse, _ request: DownloadRequest) async throws(Failure)
        -> ItemEnding
    {
        guard var source = item.source else {
            return .failed(Failure(.http(304), "The origin answered 304 to a request without validators."))
        }
        source.fetchedAt = stages.settings.now()
        source.etag = response.etag ?? source.etag
        source.lastModified = response.lastModified ?? source.lastModified
        source.http = stages.fetcher.facts(of: response, request, replacing: source.http)
        // The cached bytes were damaged meanwhile and are forgotten; the next claim fetches them again.
        return try await completed(from: source) ?? .release
    }

    private func rendered(_ fetched: FetchedSource, _ request: DownloadRequest) async throws(Failure) -> ItemEnding {
        // After rendering, the publisher owns the bytes, and the downloader may start another body.
        defer { fetched.receipt?.markConsumed() }
        let source = stages.fetcher.record(of: fetched, item, plan, request)
        do throws(Failure) {
            try item.own?.check(hash: fetched.hash.hex, size: fetched.size)
            try plan.check(source)
            guard let rendered = try await render(source, { fetched.file }) else { return .release }
            try plan.check(rendered.source)
            let original = PendingBlob(file: fetched.file, hash: fetched.hash, size: fetched.size)
            return done(rendered, original: original, from: fetched.origin)
        } catch {
            guard plan.mayBeCut(error, item, source) else { throw error }
            // The URL is at fault only if the body is complete; its connection may have cut an incomplete one.
            let response = fetched.response
            guard await stages.failures.isWhole(response, item) else {
                throw Failure(.connectionLost, error.message, response: response)
            }
            var failure = error
            guard failure.failureClass == .truncated else { throw failure }
            failure.isFinal = response.isFinal(attempts: item.attempts)
            throw failure
        }
    }

    // MARK: - Variants

    /// - Returns: nil if the cache no longer has the source's bytes.
    private func render(
        _ source: SourceRecord, _ file: @Sendable () async throws(CacheError) -> BlobFile?,
    ) async throws(Failure) -> Rendered? {
        let begun = ContinuousClock.now
        let rendered = try await stages.renderer.render(source, plan, file: file) { hash in
            guard sharedBytes != hash else { return }
            if let sharedBytes { stages.renderer.leave(sharedBytes) }
            stages.renderer.join(hash)
            sharedBytes = hash
        }
        if let rendered, !rendered.new.isEmpty { measure.transforming = .now - begun }
        return rendered
    }

    /// - Parameter original: the source's bytes, if the cache does not have them yet.
    private func done(_ rendered: Rendered, original: PendingBlob?, from origin: SourceOrigin) -> ItemEnding {
        blobs = rendered.blobs
        if plan.keepsOriginal, let original { blobs.append(original) }
        var source = rendered.source
        source.planRecheck(plan.settings.recheck, after: item.source)
        let common = stages.settings.live.values.cacheMaxAge ?? stages.settings.cacheMaxAge
        return .done(
            Completion(
                source: source, renditions: rendered.records(keepsOriginal: plan.keepsOriginal),
                newVariants: rendered.new, origin: origin,
                lifetime: FileLifetime(own: plan.settings.cacheMaxAge, common: common)))
    }
}
