internal import ContentCache
internal import Jobs
internal import Logging

extension Pipeline {
    /// Ends an item from what is cached, making variants that are missing from a source that is kept.
    ///
    /// - Returns: `nil` when the network is needed.
    func fromCache(_ item: ClaimedItem, _ plan: JobPlan, _ holdings: inout Holdings) async -> ItemResult? {
        guard !plan.options.contains(.fromLoaderOnly) else { return nil }
        guard let source = item.source else { return await fromReadOnly(item, plan, &holdings) }
        let isOnlyWay = plan.options.contains(.fromCacheOnly)
        guard isOnlyWay || !needsAsking(source, plan) else { return nil }
        return await completeFromCache(source, plan, &holdings)
    }

    /// What the main cache doesn't know is looked up in those that are only read, and copied from there.
    private func fromReadOnly(_ item: ClaimedItem, _ plan: JobPlan, _ holdings: inout Holdings) async -> ItemResult? {
        for other in readOnly {
            do {
                guard let source = try await other.store.source(key: item.key), source.isKept,
                    plan.options.contains(.fromCacheOnly) || !needsAsking(source, plan),
                    let hash = BlobHash(source.hash),
                    let copy = try await reading.run({ [cache] in
                        Result {
                            try other.cache.openWhole(hash).map { try cache.makeCopy(of: $0, size: source.size) }
                        }
                    }).get()
                else { continue }
                let original = PendingBlob(file: copy, hash: hash, size: source.size)
                guard case .made(let made) = await make(source, plan, file: { copy }, &holdings) else {
                    holdings.releaseSource(sources)
                    continue
                }
                return made.result(plan: plan, isCached: true, original: original)
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
            return decided(failure, attempts: 0, isFetched: false)
        case .release(let reason):
            return .release(reason)
        case .sourceMissing:
            // The network may bring the same bytes again, and their lock can't be taken twice.
            holdings.releaseSource(sources)
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

    private func needsAsking(_ source: SourceRecord, _ plan: JobPlan) -> Bool {
        if plan.options.contains(.refreshCached) { return true }
        return settings.maxAge >= 0 && settings.now() - source.fetchedAt > settings.maxAge
    }
}
