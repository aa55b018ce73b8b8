internal import ContentCache
internal import Jobs

extension Pipeline {
    /// Ends an item from what is cached, making variants that are missing from a source that is kept.
    ///
    /// - Returns: `nil` when the network is needed.
    func fromCache(_ item: ClaimedItem, _ plan: JobPlan, _ holdings: inout Holdings) async -> ItemResult? {
        guard let source = item.source, !plan.options.contains(.fromLoaderOnly) else { return nil }
        let isOnlyWay = plan.options.contains(.fromCacheOnly)
        guard isOnlyWay || !needsAsking(source, plan) else { return nil }
        return await completeFromCache(source, plan, &holdings)
    }

    /// The rest of `fromCache`, also used when the origin says that nothing changed.
    func completeFromCache(
        _ source: SourceRecord, _ plan: JobPlan, _ holdings: inout Holdings,
    ) async -> ItemResult? {
        guard let hash = BlobHash(source.hash) else { return nil }
        let isKept = source.isKept && cache.exists(hash, size: source.size)
        guard isKept || !plan.keepsOriginal else { return nil }
        let file: @Sendable () async throws(CacheError) -> BlobFile? = { [reading, cache] () throws(CacheError) in
            guard isKept else { return nil }
            let opened = await reading.run { () -> Result<BlobFile, CacheError> in
                do throws(CacheError) {
                    return .success(try cache.openVerified(hash))
                } catch {
                    return .failure(error)
                }
            }
            return try opened.get()
        }
        switch await make(source, plan, file: file, &holdings) {
        case .made(let made):
            return made.result(plan: plan, isCached: true, original: nil)
        case .failed(let failure):
            return decided(failure, of: source.key, attempts: 0, isFetched: false)
        case .release(let reason):
            return .release(reason)
        case .sourceMissing:
            // The network may bring the same bytes again, and their lock can't be taken twice.
            holdings.releaseSource(sources)
            return nil
        }
    }

    private func needsAsking(_ source: SourceRecord, _ plan: JobPlan) -> Bool {
        if plan.options.contains(.refreshCached) { return true }
        return settings.maxAge >= 0 && settings.now() - source.fetchedAt > settings.maxAge
    }
}
