internal import ContentCache
internal import Download
internal import Jobs

// What an origin may confirm instead of sending it anew.
extension Pipeline {
    /// Only what is whole in the cache may be confirmed by a 304; otherwise the bytes are needed. Where nobody has looked yet,
    /// they may turn out not to be, and then there would be nothing. A job that doesn't keep them needs just what was made of
    /// them.
    func validators(of item: ClaimedItem, _ plan: JobPlan) async -> SourceRecord? {
        guard let source = item.source, !plan.hasToSee(source), let hash = BlobHash(source.hash) else { return nil }
        if source.isKept, cache.exists(hash, size: source.size) { return source }
        guard !plan.keepsOriginal, plan.isSatisfied(with: source) else { return nil }
        return await hasAll(of: source, plan) ? source : nil
    }

    /// Whether a stored answer is one to this request, as its `Vary` has it. The date of another says nothing of what would
    /// be sent now, which may be older; a tag names one answer alone (RFC 9111, section 4.3.1).
    func isAnswer(_ source: SourceRecord, to request: DownloadRequest) -> Bool {
        guard let facts = source.http else { return true }
        let varied = downloader.configuration.varied(request, by: facts.vary)
        return varied != nil && varied == facts.varied
    }
}

extension DownloadResponse {
    /// Whether a 304 is about what we have: one with another strong validator isn't.
    func confirms(_ request: DownloadRequest) -> Bool {
        guard let ours = request.etag, let theirs = etag, !theirs.hasPrefix("W/") else { return true }
        return theirs == (ours.hasPrefix("W/") ? String(ours.dropFirst(2)) : ours)
    }

    /// Whether a redirect has led to where what we have came from. Of signatures and other queries a strong tag that is said
    /// again makes up for the difference.
    func isAbout(_ source: SourceRecord) -> Bool {
        guard redirects > 0 || source.http?.redirects != nil else { return true }
        let before = source.finalURL ?? source.key
        if finalURL == before { return true }
        guard let etag, etag == source.etag, !etag.hasPrefix("W/") else { return false }
        return finalURL.prefix { $0 != "?" } == before.prefix { $0 != "?" }
    }
}
