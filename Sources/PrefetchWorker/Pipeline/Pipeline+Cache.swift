internal import ContentCache
internal import Download
internal import Jobs
internal import Logging

extension Pipeline {
    /// Ends an item from what is cached, making variants that are missing from a source that is kept.
    ///
    /// - Returns: `nil` when the network is needed.
    func fromCache(
        _ item: ClaimedItem, _ plan: JobPlan, _ holdings: inout Holdings,
    ) async throws(FetchFailure) -> ItemResult? {
        guard !plan.options.contains(.fromLoaderOnly) else { return nil }
        guard let source = item.source else { return try await fromReadOnly(item, plan, &holdings) }
        let isOnlyWay = plan.options.contains(.fromCacheOnly)
        if !isOnlyWay, try await needsAsking(source, item, plan, &holdings) { return nil }
        return await completeFromCache(source, plan, &holdings)
    }

    /// What the main cache doesn't know is looked up in those that are only read, and copied from there.
    private func fromReadOnly(
        _ item: ClaimedItem, _ plan: JobPlan, _ holdings: inout Holdings,
    ) async throws(FetchFailure) -> ItemResult? {
        for other in readOnly {
            do {
                guard let source = try await other.store.source(key: item.key), source.isKept else { continue }
                if !plan.options.contains(.fromCacheOnly), try await needsAsking(source, item, plan, &holdings) {
                    continue
                }
                guard
                    let hash = BlobHash(source.hash),
                    let copy = try await reading.run({ [budget, cache] in
                        Result {
                            try other.cache.openWhole(hash).map { file in
                                let copy = try budget.makeFile(for: source.size, in: cache)
                                try cache.copy(file, to: copy, size: source.size)
                                return copy
                            }
                        }
                    }).get()
                else { continue }
                let original = PendingBlob(file: copy, hash: hash, size: source.size)
                guard case .made(let made) = await make(source, plan, file: { copy }, &holdings) else {
                    continue
                }
                return made.result(plan: plan, isCached: true, original: original)
            } catch let failure as FetchFailure where failure.failure == .delegate {
                throw failure
            } catch {
                logger.warning("A read-only cache can't be used.", metadata: ["error": "\(error)"])
            }
        }
        return nil
    }

    /// The rest of `fromCache`, also used when the origin says that nothing changed.
    func completeFromCache(
        _ source: SourceRecord, _ plan: JobPlan, _ holdings: inout Holdings,
    ) async -> ItemResult? {
        guard let hash = BlobHash(source.hash) else { return nil }
        let isKept = source.isKept && cache.exists(hash, size: source.size)
        guard isKept || !plan.keepsOriginal else { return nil }
        let file: @Sendable () async throws(CacheError) -> BlobFile? = { [self] () throws(CacheError) in
            isKept ? try await opened(hash) : nil
        }
        switch await make(source, plan, file: file, &holdings) {
        case .made(let made):
            return made.result(plan: plan, isCached: true, original: nil)
        case .failed(let failure):
            // Bytes that were kept without a look at them: their origin may have better ones.
            if plan.hasToSee(source), !plan.options.contains(.fromCacheOnly) {
                return nil
            }
            return decided(failure, of: source.key, attempts: 0, isFetched: false)
        case .release(let reason):
            return .release(reason)
        case .sourceMissing:
            return nil
        }
    }

    /// A source's bytes, from memory or read and verified from the disk.
    private func opened(_ hash: BlobHash) async throws(CacheError) -> BlobFile {
        if let file = memory.source(hash) { return file }
        let opened = await reading.run { [cache, memory] () -> Result<BlobFile, CacheError> in
            do throws(CacheError) {
                let file = try cache.openVerified(hash)
                memory.keep(hash, file)
                return .success(file)
            } catch {
                return .failure(error)
            }
        }
        return try opened.get()
    }

    /// Ages are told by the machine's clock, as HTTP does. One that was set costs a small request, and no source stays
    /// unasked about for years because of it.
    private func needsAsking(
        _ source: SourceRecord, _ item: ClaimedItem, _ plan: JobPlan, _ holdings: inout Holdings,
    ) async throws(FetchFailure) -> Bool {
        if plan.options.contains(.refreshCached) { return true }
        let now = settings.now()
        if plan.options.contains(.httpCache) {
            guard let facts = source.http, let freshness = source.freshness, facts.redirects == nil else { return true }
            if !freshness.isFresh(at: now / 1_000) || Self.isAhead(facts.answeredAt, of: now) { return true }
            return !isMeant(source, for: try await asked(for: item, plan, &holdings))
        }
        let maxAge = plan.settings.maxAge ?? settings.maxAge
        // Whatever somebody has typed into the table.
        let fetched = min(max(source.fetchedAt, -1 << 52), 1 << 52)
        return maxAge >= 0 && (now - fetched > maxAge || Self.isAhead(fetched, of: now))
    }

    /// Whether a stored answer is one to this request, and may be used for it, as RFC 9111 has it.
    private func isMeant(_ source: SourceRecord, for request: DownloadRequest) -> Bool {
        guard let facts = source.http, let freshness = source.freshness else { return false }
        let configuration = downloader.configuration
        if configuration.isAuthorized(request), !freshness.isForAuthorized { return false }
        let varied = configuration.varied(request, by: facts.vary)
        return varied != nil && varied == facts.varied
    }

    /// Whether something can't have been at that time yet: the clock was set back. Ten minutes are for clocks that differ.
    private static func isAhead(_ time: Int64, of now: Int64) -> Bool { time - now > 600_000 }

    /// The item under the key that the delegate or its job's rule makes of its URL.
    func keyed(_ item: ClaimedItem, _ plan: JobPlan) async throws(FetchFailure) -> ClaimedItem {
        var key = try await delegatedKey(item)
        do throws(JobsError) {
            if key == nil { key = try plan.settings.cacheKey?.key(of: item.url) }
        } catch {
            throw FetchFailure(failure: .delegate, message: error.message)
        }
        guard let key, key != item.key, !key.isEmpty else { return item }
        do throws(JobsError) {
            return try await store.look(up: item, by: key)
        } catch {
            logger.warning("A cache key can't be looked up.", metadata: ["error": "\(error)"])
            return item
        }
    }

    /// What is cached in place of a failure of the origin's, for jobs that say so.
    func stale(
        _ result: ItemResult, _ item: ClaimedItem, _ plan: JobPlan, _ holdings: inout Holdings,
    ) async -> ItemResult? {
        guard plan.options.contains(.staleIfError), !plan.options.contains(.fromLoaderOnly), let source = item.source,
            let failed = result.failed, failed.failure.isTheOrigins
        else { return nil }
        if plan.options.contains(.httpCache) {
            do throws(FetchFailure) {
                let request = try await asked(for: item, plan, &holdings)
                let control = downloader.configuration.value(of: "cache-control", in: request)
                guard isMeant(source, for: request),
                    source.freshness?.mayBeUsedOnError(at: settings.now() / 1_000, cacheControl: control) == true
                else { return nil }
            } catch {
                return nil
            }
        }
        let instead = await completeFromCache(source, plan, &holdings)
        guard case .done(var completion) = instead?.ending else { return instead }
        completion.concealed = failed
        return ItemResult(kind: .ended(.done(completion)), blobs: instead?.blobs ?? [])
    }
}

extension SourceRecord {
    var freshness: Freshness? {
        http.map { facts in
            Freshness(
                status: facts.status ?? 200, cacheControl: facts.cacheControl, expires: facts.expires, date: facts.date,
                age: facts.age,
                lastModified: lastModified, askedAt: facts.askedAt / 1_000, answeredAt: facts.answeredAt / 1_000)
        }
    }
}

extension FailureClass {
    /// RFC 9111, section 4.2.4, and RFC 5861: no answer, or one of 500, 502, 503 and 504.
    fileprivate var isTheOrigins: Bool {
        switch self {
        case .http(let status): [500, 502, 503, 504].contains(status)
        case .truncated: true
        default: isUnreachable
        }
    }
}

extension ItemResult {
    fileprivate var failed: FailureRecord? {
        switch ending {
        case .failed(let failure), .retry(_, let failure, _): failure
        case .done, .blacklisted, .wait, .release: nil
        }
    }
}
