internal import ContentCache
internal import Core
internal import Download
internal import Jobs
internal import Logging

/// Fetches sources, each once for all items that need it at the same time.
final class Fetcher: Sendable {
    /// All items that joined a fetch share its outcome.
    typealias Fetches = SharedFetches<DownloadOutcome<FetchedSource>>

    let downloader: Downloader
    let fetches: Fetches
    /// Sources that need no download.
    let loaders: Loaders
    private let previews: Previews?
    private let hosts: HostBook
    private let settings: StageSettings
    private let logger: Logger
    private let toldWaits = ReportedWaits()

    /// Whether bodies are refused by their first bytes. If a delegate replaces bodies, its results are checked instead.
    private let inspectsBodies: Bool

    init(
        downloader: Downloader, loaders: Loaders, hosts: HostBook, settings: StageSettings, options: Options,
        logger: Logger,
    ) {
        self.downloader = downloader
        self.loaders = loaders
        self.hosts = hosts
        self.settings = settings
        self.logger = logger
        previews = options.previews
        inspectsBodies = options.inspectsBodies
        fetches = Fetches { name, position in
            downloader.update(priority: position.priority, rank: position.rank, for: name)
        }
    }

    struct Options {
        /// Nil if the program uses no previews.
        var previews: Previews?
        var inspectsBodies = true
    }

    // MARK: - Requests

    /// - Parameter validators: the source that a 304 may confirm.
    func request(for item: ClaimedItem, _ plan: JobPlan, validators: SourceRecord?) -> DownloadRequest {
        var request = DownloadRequest(
            url: URLText.cacheKey(item.url),
            headers: plan.definition.headers.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) },
            priority: plan.definition.priority,
            rank: FetchPosition.rank(of: item.id, plan.definition.order),
            etag: validators?.etag, lastModified: validators?.lastModified, id: item.id,
        )
        request.allowInvalidCertificates = plan.options.contains(.allowInvalidCertificates)
        request.respectsRobotsTag = plan.options.contains(.respectRobotsTag)
        request.respectsRobotsText = plan.options.contains(.respectRobotsText)
        request.contentTypes = plan.settings.contentTypes
        request.timeouts = plan.timeouts(settings.live.values)
        request.isRepeated = item.attempts > 0
        request.isInspected = inspectsBodies
        // A body that a delegate replaces is checked after that.
        if inspectsBodies { request.filter = plan.bodyFilter(of: item.own) }
        if plan.options.contains(.handleCookies) { request.cookieJar = plan.definition.id }
        request.progress = loaders.transfers.watch(item.id, item.url)
        if plan.options.contains(.progressive) { request.watch = previews?.watch(item.key) }
        return request
    }

    /// The key of the fetch that an item joins. Requests that send different headers do not share a fetch.
    func key(of request: DownloadRequest, _ item: ClaimedItem) -> String {
        var key = item.key
        for header in request.headers { key += "\n\(header.name.lowercased()): \(header.value)" }
        if request.allowInvalidCertificates { key += "\nallow-invalid" }
        if request.url != URLText.cacheKey(item.url) { key += "\nfrom \(request.url)" }
        if let types = request.contentTypes { key += "\nof \(types)" }
        if request.timeouts != DownloadRequest.Timeouts() { key += "\nwithin \(request.timeouts)" }
        if let filter = request.filter { key += "\n\(filter.name)" }
        if request.respectsRobotsTag { key += "\nrobots-tag" }
        if request.respectsRobotsText { key += "\nrobots-txt" }
        if let jar = request.cookieJar { key += "\ncookies of \(jar)" }
        if request.etag != nil || request.lastModified != nil { key += "\nconditional" }
        return key
    }

    // MARK: - Fetches

    /// Joins the fetch with this key, and starts it if there is none. Each call needs one `leave`.
    ///
    /// - Parameter hasOwnPriority: whether the request's priority is the item's own, and not its job's.
    func fetch(
        _ request: DownloadRequest, _ key: String, _ item: ClaimedItem, hasOwnPriority: Bool,
    ) async -> DownloadOutcome<FetchedSource> {
        let position = FetchPosition(priority: request.priority, rank: request.rank, isOwn: hasOwnPriority)
        let known = item.source
        return await fetches.join(key, user: item.id, position: position) { [self] in
            do throws(Failure) {
                return try await fetch(request, key, known: known)
            } catch {
                return .failed(error)
            }
        }
    }

    /// The items among these whose fetch waits in the downloader.
    func waiting(_ items: Set<Int64>) -> [Int64] {
        fetches.names(of: items).filter { downloader.isWaiting($0.name) }.map(\.user)
    }

    /// Whether the item has started the fetch that it has joined.
    func isStarter(_ item: Int64, of key: String) -> Bool { fetches.starter(of: key) == item }

    func leave(_ key: String, user: Int64) { fetches.leave(key, user: user) }

    /// - Parameter known: the source whose validators the request has.
    private func fetch(
        _ request: DownloadRequest, _ key: String, known: SourceRecord?,
    ) async throws(Failure) -> DownloadOutcome<FetchedSource> {
        if let loaded = try await loaders.load(request, limit: settings.limits.maxBodyBytes) { return loaded }
        var request = request
        request.currentPosition = { [fetches] in fetches.position(key).map { ($0.priority, $0.rank) } }
        switch await downloader.download(request) {
        case .shed(let host):
            return .shed(host)
        case .failed(let failure):
            // Blocks the host for this worker; other workers read the block from the database.
            await remember(failure, of: request.url)
            return .failed(failure)
        case .notModified(let response):
            guard response.confirms(request), known.map(response.isAbout) ?? true else {
                // The ETag belongs to a version that is not cached (RFC 9111, section 4.3.4).
                request.etag = nil
                request.lastModified = nil
                return try await fetch(request, key, known: nil)
            }
            return .notModified(response)
        case .body(let body, let response):
            guard body.size > 0 else {
                guard response.isWhole else {
                    throw Failure(.connectionLost, "The connection ended before the body.", response: response)
                }
                throw Failure(.badImage, "The origin sent an empty body.")
            }
            guard let source = FetchedSource(body, response) else {
                throw Failure(.diskError, "A body came without a hash.")
            }
            return .body(source, response)
        }
    }

    /// Stores a host's `Retry-After` first, so that a worker that takes over after a crash obeys it.
    private func remember(_ failure: Failure, of url: String) async {
        guard let wait = failure.retryAfter?.milliseconds, wait > 0, failure.failureClass.treatment == .retry else {
            return
        }
        let host = failure.host ?? HostNames.name(ofURL: url)
        let time = settings.now() + wait
        guard toldWaits.isNews(host, until: time) else { return }
        do throws(JobsError) {
            try await hosts.block(host: host, until: time)
        } catch {
            toldWaits.forget(host)
            logger.warning("A Retry-After can't be stored yet.", metadata: ["error": "\(error)"])
        }
    }

    // MARK: - Records

    /// The index's record of a fetched source.
    func record(
        of fetched: FetchedSource, _ item: ClaimedItem, _ plan: JobPlan, _ request: DownloadRequest,
    ) -> SourceRecord {
        let response = fetched.response
        var source = SourceRecord(
            key: item.key, hash: fetched.hash.hex, size: fetched.size, isKept: plan.keepsOriginal,
            finalURL: response.finalURL == item.key || response.finalURL.isEmpty ? nil : response.finalURL,
            etag: response.etag, lastModified: response.lastModified, fetchedAt: settings.now(),
        )
        source.http = facts(of: response, request, replacing: nil)
        if let known = item.source, known.hash == source.hash { source.takeFacts(from: known) }
        source.format = source.format ?? (plan.decodes ? nil : fetched.format)
        return source
    }

    /// The fields from which freshness is computed; those that a 304 leaves out stay (RFC 9111, section 3.2).
    func facts(of response: DownloadResponse, _ request: DownloadRequest, replacing old: HTTPFacts?) -> HTTPFacts {
        let now = settings.now()
        let vary = response.vary ?? old?.vary
        return HTTPFacts(
            cacheControl: response.cacheControl ?? old?.cacheControl, expires: response.expires ?? old?.expires,
            date: response.date, age: response.age, vary: vary,
            varied: downloader.configuration.varied(request, by: vary),
            askedAt: now - response.timings.total.milliseconds, answeredAt: now,
            redirects: response.redirects > 0 ? response.redirects : nil,
            status: response.status == 304 ? old?.status : response.status == 200 ? nil : response.status)
    }
}

extension DownloadResponse {
    /// Whether a 304 confirms the cached version; a 304 with another strong validator does not.
    fileprivate func confirms(_ request: DownloadRequest) -> Bool {
        guard let ours = request.etag, let theirs = etag, !theirs.hasPrefix("W/") else { return true }
        return theirs == (ours.hasPrefix("W/") ? String(ours.dropFirst(2)) : ours)
    }

    /// Whether the redirects led to the URL of the cached source. URLs that differ only in their query, such as
    /// signatures, count as the same if the strong ETag is equal.
    fileprivate func isAbout(_ source: SourceRecord) -> Bool {
        guard redirects > 0 || source.http?.redirects != nil else { return true }
        let before = source.finalURL ?? source.key
        if finalURL == before { return true }
        guard let etag, etag == source.etag, !etag.hasPrefix("W/") else { return false }
        return finalURL.prefix { $0 != "?" } == before.prefix { $0 != "?" }
    }
}
