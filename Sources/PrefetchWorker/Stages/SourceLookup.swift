internal import ContentCache
internal import Core
internal import Download
internal import Jobs
internal import Logging

/// Finds the cached source of an item's URL, and decides whether it may be used without revalidation.
final class SourceLookup: Sendable {
    /// Whether a cached source may be used.
    enum Usability {
        case fresh
        case stale
        /// Fresh, for requests that the stored answer matches.
        case forMatchingRequest
    }

    let index: CacheIndex
    let files: SourceFiles
    /// Caches that are searched after the main one, in this order, and never written to.
    let readOnly: [ReadOnlyCache]
    /// The configuration that determines which headers a request is sent with.
    let requests: DownloadConfiguration
    let settings: StageSettings
    let logger: Logger

    init(
        index: CacheIndex, files: SourceFiles, readOnly: [ReadOnlyCache], requests: DownloadConfiguration,
        settings: StageSettings, logger: Logger,
    ) {
        self.index = index
        self.files = files
        self.readOnly = readOnly
        self.requests = requests
        self.settings = settings
        self.logger = logger
    }

    // MARK: - Bytes

    /// The item with the source of a cache key other than its URL.
    func find(_ item: ClaimedItem, by key: String) async -> ClaimedItem {
        guard key != item.key, !key.isEmpty else { return item }
        do throws(JobsError) {
            return try await index.look(up: item, by: key)
        } catch {
            logger.warning("A cache key can't be looked up.", metadata: ["error": "\(error)"])
            return item
        }
    }

    /// Whether the cache has a source's bytes.
    func isThere(_ source: SourceRecord) -> Bool {
        source.isKept && (BlobHash(source.hash).map { files.cache.exists($0, size: source.size) } ?? false)
    }

    /// The bytes of a source, from memory or read and verified from the disk.
    func open(_ source: SourceRecord) async throws(CacheError) -> BlobFile? {
        guard let hash = BlobHash(source.hash) else { return nil }
        return try await files.open(hash)
    }

    /// The source of a key in a read-only cache.
    func source(of key: String, in other: ReadOnlyCache) async -> SourceRecord? {
        do throws(JobsError) {
            return try await other.store.cache.source(key: key).flatMap { $0.isKept ? $0 : nil }
        } catch {
            logger.warning("A read-only cache can't be used.", metadata: ["error": "\(error)"])
            return nil
        }
    }

    /// A verified copy of a source's bytes in the main cache's file system; nil if they are missing.
    ///
    /// - Throws: failures of the main cache and its disk.
    func copy(of source: SourceRecord, from other: ReadOnlyCache) async throws(Failure) -> PendingBlob? {
        guard let hash = BlobHash(source.hash) else { return nil }
        do {
            return try await files.copy(hash, size: source.size, from: other.cache)
        } catch let failure as Failure {
            throw failure
        } catch {
            logger.warning("A read-only cache can't be used.", metadata: ["error": "\(error)"])
            return nil
        }
    }

    // MARK: - Freshness

    /// Ages use the wall clock, as HTTP does. If it was set back, a source is revalidated, to be safe.
    func freshness(of source: SourceRecord, _ plan: JobPlan) -> Usability {
        if plan.options.contains(.refreshCached) { return .stale }
        let now = settings.now()
        if plan.options.contains(.httpCache) {
            guard let facts = source.http, let freshness = source.freshness, facts.redirects == nil,
                freshness.isFresh(at: now.milliseconds / 1_000), !Self.isAhead(facts.answeredAt, of: now)
            else { return .stale }
            return .forMatchingRequest
        }
        let maxAge = plan.settings.maxAge(of: source) ?? settings.maxAge
        let isOld = now - source.fetchedAt > maxAge || Self.isAhead(source.fetchedAt, of: now)
        return maxAge >= 0 && isOld ? .stale : .fresh
    }

    /// Whether a time lies in the future, so that the clock was set back. Ten minutes allow for clocks that differ.
    private static func isAhead(_ time: WallTime, of now: WallTime) -> Bool { time - now > 600_000 }

    /// Whether a stored answer may be used for this request (RFC 9111, section 4).
    func isStored(_ source: SourceRecord, for request: DownloadRequest) -> Bool {
        guard let facts = source.http, let freshness = source.freshness else { return false }
        if requests.isAuthorized(request), !freshness.isForAuthorized { return false }
        let varied = requests.varied(request, by: facts.vary)
        return varied != nil && varied == facts.varied
    }

    /// Whether a stored answer may replace an error (RFC 5861, section 4).
    func mayReplaceError(_ source: SourceRecord, for request: DownloadRequest) -> Bool {
        let control = requests.value(of: "cache-control", in: request)
        return isStored(source, for: request)
            && source.freshness?.mayBeUsedOnError(at: settings.now().milliseconds / 1_000, cacheControl: control)
                == true
    }

    /// Whether a stored answer is the variant that this request selects, by its `Vary`. A date cannot validate another
    /// variant, which may be older; a tag identifies one variant (RFC 9111, section 4.3.1).
    func isVariant(_ source: SourceRecord, of request: DownloadRequest) -> Bool {
        guard let facts = source.http else { return true }
        let varied = requests.varied(request, by: facts.vary)
        return varied != nil && varied == facts.varied
    }
}

extension SourceRecord {
    fileprivate var freshness: Freshness? {
        http.map { facts in
            Freshness(
                status: facts.status ?? 200, cacheControl: facts.cacheControl, expires: facts.expires, date: facts.date,
                age: facts.age, lastModified: lastModified,
                times: (facts.askedAt.milliseconds / 1_000, facts.answeredAt.milliseconds / 1_000))
        }
    }
}
