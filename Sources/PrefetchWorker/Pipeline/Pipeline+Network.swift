internal import ContentCache
internal import Download
internal import Imaging
internal import Jobs
internal import Logging

extension Pipeline {
    /// Fetches the item's URL, together with whoever else wants it now, and makes its variants.
    func fromNetwork(
        _ item: ClaimedItem, _ plan: JobPlan, _ holdings: inout Holdings,
    ) async throws(FetchFailure) -> ItemResult {
        let request = try await asked(for: item, plan, &holdings)
        let key = fetchKey(of: item, plan, request)
        holdings.fetch = key
        let place = FetchPlace(priority: request.priority, rank: request.rank)
        let known = item.source
        let fetched = await fetches.join(key, user: item.id, place: place) { [self] in
            await fetch(request, key, known: known)
        }
        holdings.lastTry = fetched.record(at: settings.now())
        switch fetched {
        case .failed(let failure):
            let result = decided(failure, of: item.url, attempts: item.attempts, isFetched: true)
            return plan.isAlone(with: failure, request) ? result.unlisted : result
        case .notModified(let response):
            return await unchanged(item, plan, request, response, &holdings)
        case .crowded(let host):
            return blocked(item, at: host) ?? crowded(host)
        case .source(let fetched):
            return await finish(item, plan, request, try await delegated(fetched, item), &holdings)
        }
    }

    /// What is sent for an item, as the delegate has it, who is asked once.
    func asked(
        for item: ClaimedItem, _ plan: JobPlan, _ holdings: inout Holdings,
    ) async throws(FetchFailure) -> DownloadRequest {
        if let request = holdings.request { return request }
        var request = try await delegated(request(for: item, plan), item)
        if let source = item.source, !isAnswer(source, to: request) { request.lastModified = nil }
        holdings.request = request
        return request
    }

    /// - Parameter known: what the validators in the request are those of.
    private func fetch(_ request: DownloadRequest, _ key: String, known: SourceRecord?) async -> Fetched {
        if LocalSources.isLocal(request.url) { return await local(request.url) }
        var request = request
        request.currentPlace = { [fetches] in fetches.place(key).map { ($0.priority, $0.rank) } }
        switch await downloader.download(request) {
        case .failed(let error) where error.code == .crowded:
            return .crowded(error.host ?? host(of: request.url))
        case .failed(let error):
            // Everybody here leaves a host alone that asked for it; other workers read it from the database.
            let failure = FetchFailure(error)
            await remember(failure, of: request.url)
            return .failed(failure)
        case .notModified(let response):
            guard response.confirms(request), known.map(response.isAbout) ?? true else {
                // Of something else that we don't have (RFC 9111, section 4.3.4).
                request.etag = nil
                request.lastModified = nil
                return await fetch(request, key, known: nil)
            }
            return .notModified(response)
        case .body(let body, let response):
            guard body.size > 0 else {
                return .failed(FetchFailure(failure: .badImage, message: "The origin sent an empty body."))
            }
            guard let source = FetchedSource(body, response) else {
                return .failed(FetchFailure(failure: .diskError, message: "A body came without a hash."))
            }
            return .source(source)
        }
    }

    /// A host's `Retry-After` is written down before anything else happens: who comes after a worker that dies now would
    /// else ask again.
    private func remember(_ failure: FetchFailure, of url: String) async {
        guard let wait = failure.retryAfter, wait > 0, failure.failure.treatment == .retry else { return }
        let (host, time) = (failure.host ?? host(of: url), settings.now() + wait)
        guard toldWaits.isNews(host, until: time) else { return }
        do throws(JobsError) {
            try await store.block(host: host, until: time)
        } catch {
            toldWaits.forget(host)
            logger.warning("A Retry-After can't be written down yet.", metadata: ["error": "\(error)"])
        }
    }

    private func local(_ url: String) async -> Fetched {
        await reading.run { [budget, cache, settings] in
            do throws(FetchFailure) {
                let source = try settings.local.read(url, limit: settings.maxBodyBytes) { bytes throws(FetchFailure) in
                    try budget.makeFile(for: bytes, in: cache)
                }
                return .source(source)
            } catch {
                return .failed(error)
            }
        }
    }

    private func request(for item: ClaimedItem, _ plan: JobPlan) async -> DownloadRequest {
        let validators = plan.options.contains(.fromLoaderOnly) ? nil : await validators(of: item, plan)
        var request = DownloadRequest(
            url: URLText.cacheKey(item.url),
            headers: plan.definition.headers.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) },
            priority: plan.definition.priority,
            rank: plan.definition.order == .fifo ? item.id : ~item.id,
            etag: validators?.etag, lastModified: validators?.lastModified,
            allowInvalidCertificates: plan.options.contains(.allowInvalidCertificates), id: item.id,
        )
        request.respectsRobotsTag = plan.options.contains(.respectRobotsTag)
        request.respectsRobotsText = plan.options.contains(.respectRobotsText)
        request.contentTypes = plan.settings.contentTypes
        request.isRepeated = item.attempts > 0
        // What it stores instead is what has to be an image.
        request.isInspected = !(delegate?.hooks.contains(.bytes) ?? false)
        if plan.options.contains(.handleCookies) { request.cookieJar = plan.definition.id }
        if plan.options.contains(.progressive) { request.watch = previews?.watch(item.key) }
        return request
    }

    /// Requests that differ in what they send are not the same fetch.
    private func fetchKey(of item: ClaimedItem, _ plan: JobPlan, _ request: DownloadRequest) -> String {
        var key = item.key
        for header in request.headers { key += "\n\(header.name.lowercased()): \(header.value)" }
        if request.allowInvalidCertificates { key += "\nallow-invalid" }
        if request.url != URLText.cacheKey(item.url) { key += "\nfrom \(request.url)" }
        if let types = request.contentTypes { key += "\nof \(types)" }
        if request.respectsRobotsTag { key += "\nrobots-tag" }
        if request.respectsRobotsText { key += "\nrobots-txt" }
        if let jar = request.cookieJar { key += "\ncookies of \(jar)" }
        if request.etag != nil || request.lastModified != nil { key += "\nconditional" }
        return key
    }

    private func unchanged(
        _ item: ClaimedItem, _ plan: JobPlan, _ request: DownloadRequest, _ response: DownloadResponse,
        _ holdings: inout Holdings,
    ) async -> ItemResult {
        guard var source = item.source else {
            return .failed(FailureRecord(.http(304), "The origin answered 304 to a request without validators."))
        }
        source.fetchedAt = settings.now()
        source.etag = response.etag ?? source.etag
        source.lastModified = response.lastModified ?? source.lastModified
        source.http = facts(of: response, request, replacing: source.http)
        if let result = await completeFromCache(source, plan, &holdings) { return result }
        // The cached bytes were damaged since: the next claim finds them forgotten and fetches anew.
        return .release()
    }

    private func finish(
        _ item: ClaimedItem, _ plan: JobPlan, _ request: DownloadRequest, _ fetched: FetchedSource,
        _ holdings: inout Holdings,
    ) async -> ItemResult {
        let response = fetched.response
        var source = SourceRecord(
            key: item.key, hash: fetched.hash.hex, size: fetched.size, isKept: plan.keepsOriginal,
            finalURL: response.finalURL == item.key || response.finalURL.isEmpty ? nil : response.finalURL,
            etag: response.etag,
            lastModified: response.lastModified, fetchedAt: settings.now(),
        )
        source.http = facts(of: response, request, replacing: nil)
        if let known = item.source, known.hash == source.hash { source.takeFacts(from: known) }
        source.format = source.format ?? (plan.decodes ? nil : fetched.format)
        let made = await make(source, plan, file: { fetched.file }, &holdings)
        // From here on it is the publisher's; the next body may come.
        fetched.receipt?.markConsumed()
        switch made {
        case .made(let made):
            let original = PendingBlob(file: fetched.file, hash: fetched.hash, size: fetched.size)
            return made.result(plan: plan, isCached: false, original: original)
        case .failed(var failure):
            failure.isFinal = failure.failure == .truncated && response.isFinal(attempts: item.attempts)
            return decided(failure, of: item.url, attempts: item.attempts, isFetched: true)
        case .release(let reason):
            return .release(reason)
        case .sourceMissing:
            return .release()
        }
    }

    /// What a 304 leaves out is as it was (RFC 9111, section 3.2).
    private func facts(
        of response: DownloadResponse, _ request: DownloadRequest, replacing old: HTTPFacts?,
    ) -> HTTPFacts {
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

    /// What a failure means for the item: another try, its end, or back to the queue.
    func decided(_ failure: FetchFailure, of url: String, attempts: Int, isFetched: Bool) -> ItemResult {
        // Cancelled from inside means that the worker is stopping or the job is gone; the fence sorts out which.
        if failure.failure == .cancelled { return .release() }
        var record = FailureRecord(failure.failure, failure.message)
        record.host = failure.host
        record.hasAsked = failure.hasAsked
        if isFetched, let wait = failure.retryAfter, wait > 0, failure.failure.treatment == .retry {
            record.blocksHostUntil = settings.now() + wait
        }
        let decision = settings.retries.decide(
            failure.failure, attempts: failure.isFinal ? .max - 1 : attempts, retryAfter: failure.retryAfter)
        switch decision {
        case .putBack:
            return .release(failure.message)
        case .end:
            return .failed(settings.limits.explained(record))
        case .retry where failure.failure.isUnreachable && downloader.givenUp(failure.host ?? host(of: url)) != nil:
            return .failed(record)
        case .retry(let delay):
            let wait =
                isFetched
                ? min(retryBudget.take(failure.host ?? URLText.host(url), now: monotonicMilliseconds()), 3_600_000) : 0
            return .ending(.retry(at: settings.now() + max(delay, wait), record, blockingHost: false))
        }
    }
}

extension SourceRecord {
    /// The same bytes have the same facts; no pixel needs to be looked at again.
    mutating func takeFacts(from known: SourceRecord) {
        format = known.format
        width = known.width
        height = known.height
        frames = known.frames
        hasAlpha = known.hasAlpha
        looks = known.looks
    }
}

extension DownloadResponse {
    /// Whether another request would bring the same bytes of which a decoder wants more: all that were announced have come,
    /// or all of a version that has a name. Where neither was said, one more request tells.
    fileprivate func isFinal(attempts: Int) -> Bool {
        attempts > 0 || (isWhole && (announcedBytes != nil || etag != nil))
    }
}

extension JobPlan {
    /// Whether a failure is of this job's own making, so that others may fare better.
    fileprivate func isAlone(with failure: FetchFailure, _ request: DownloadRequest) -> Bool {
        if asksForItself, failure.failure.isAboutWhoAsks { return true }
        guard failure.failure == .notAnImage, let response = failure.response else { return false }
        return !request.accepts(contentType: response.contentType)
    }
}

extension FailureClass {
    /// Whether another who asks may get another answer.
    var isAboutWhoAsks: Bool {
        if case .http(let status) = self { [401, 403, 407].contains(status) } else { false }
    }
}

extension ItemResult {
    /// The same end, after which the URL isn't listed.
    fileprivate var unlisted: ItemResult {
        guard case .ended(.failed(var record)) = kind else { return self }
        record.isListed = false
        return .failed(record)
    }
}
