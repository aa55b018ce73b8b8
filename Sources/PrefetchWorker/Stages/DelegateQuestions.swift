internal import ContentCache
internal import Core
internal import Download
internal import Jobs
internal import Logging
internal import SystemPackage

/// Calls the hooks of the program's delegate. An error that a hook throws is a failure of class `delegate`.
final class DelegateQuestions: Sendable {
    /// Nil if the program has none.
    let delegate: (any WorkerDelegate)?
    let files: SourceFiles
    let logger: Logger
    let plans = PlanCache()

    init(delegate: (any WorkerDelegate)?, files: SourceFiles, logger: Logger) {
        self.delegate = delegate
        self.files = files
        self.logger = logger
    }

    /// Calls the delegate if there is one that implements the hook.
    private func ask<Answer: Sendable>(
        _ hook: DelegateHook, _ question: (any WorkerDelegate) async throws -> Answer,
    ) async throws(Failure) -> Answer? {
        guard let delegate, delegate.hooks.contains(hook) else { return nil }
        do {
            return try await question(delegate)
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure(.delegate, "The delegate failed: \(error)")
        }
    }

    /// The item's plan after the delegate's changes.
    func changed(_ plan: JobPlan, _ item: ClaimedItem) async throws(Failure) -> JobPlan {
        let asked = ItemSettings(plan.definition)
        let answer = try await ask(.options) { try await $0.settings(asked, of: item.url, item: DelegatedItem(item)) }
        guard let answer, answer != asked else { return plan }
        do throws(JobPlanError) {
            let changed = try plans.plan(for: plan.definition.changed(to: answer)).get()
            // An added `high-priority` or `low-priority` sets the priority, as for a new job, unless there is one
            // already.
            let added = changed.options.subtracting(plan.options)
            guard answer.priority == 0, asked.priority == 0, let priority = added.priority else { return changed }
            var ranked = answer
            ranked.priority = priority
            return try plans.plan(for: plan.definition.changed(to: ranked)).get()
        } catch {
            throw Failure(.delegate, "The delegate's settings for the item can't be used: \(error.message)")
        }
    }

    func key(of item: ClaimedItem) async throws(Failure) -> String? {
        try await ask(.cacheKey) { try await $0.cacheKey(of: item.url, item: DelegatedItem(item)) } ?? nil
    }

    /// Whether an item's URL may be downloaded.
    func allows(_ item: ClaimedItem) async throws(Failure) -> Bool {
        try await ask(.allow) { try await $0.allows(item.url, item: DelegatedItem(item)) } ?? true
    }

    /// The request after the delegate's changes.
    func changed(_ request: DownloadRequest, _ item: ClaimedItem) async throws(Failure) -> DownloadRequest {
        let headers = Dictionary(request.headers.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
        let asked = DelegatedRequest(url: request.url, headers: headers)
        guard let answer = try await ask(.request, { try await $0.request(asked, item: DelegatedItem(item)) }),
            answer != asked
        else { return request }
        var request = request
        request.url = answer.url
        request.headers = answer.headers(after: asked).sorted { $0.key < $1.key }.map {
            (name: $0.key, value: $0.value)
        }
        return request
    }

    /// The source after the delegate's changes to its response and bytes.
    func changed(_ source: FetchedSource, _ item: ClaimedItem) async throws(Failure) -> FetchedSource {
        let response = DelegatedResponse(source.response, url: item.url)
        let status = try await ask(.response) { try await $0.status(of: response, item: DelegatedItem(item)) }
        if let status, !(100...599).contains(status) {
            throw Failure(.delegate, "The delegate changed the status to \(status), which is no HTTP status.")
        }
        if let status, !(200...299).contains(status) {
            var failure = Failure(.http(status), "The delegate changed the status to \(status).")
            failure.response = source.response
            throw failure
        }
        let changed = try await ask(.bytes) { delegate in
            let bytes = await files.reading.run { Result { try source.file.contents(source.size) } }
            return try await delegate.bytes(bytes.get(), of: item.url, item: DelegatedItem(item))
        }
        guard let bytes = changed ?? nil else { return source }
        return try await files.blocking { [files] () throws(Failure) in
            FetchedSource(try files.store(bytes, as: "The delegate's bytes"), inPlaceOf: source)
        }
    }

    /// Whether a listed URL is fetched anyway.
    func overrules(_ entry: BlacklistEntry) async throws(Failure) -> Bool {
        try await ask(.blacklist) { try await $0.blacklists(entry.url, for: entry.failure) } == false
    }

    /// A failure with the delegate's decision on whether its URL is listed.
    func applyingBlacklistHook(to record: Failure, _ url: String) async -> Failure {
        var record = record
        do throws(Failure) {
            let answer = try await ask(.blacklist) { try await $0.blacklists(url, for: record.failureClass) } ?? nil
            record.isListed = answer ?? record.isListed
        } catch {
            logger.warning("The delegate's blacklist hook failed.", metadata: ["error": "\(error.message)"])
        }
        return record
    }
}

extension DelegatedItem {
    fileprivate init(_ item: ClaimedItem) {
        (id, job, meta) = (item.id, item.job, item.own?.meta)
    }
}

extension ItemSettings {
    fileprivate init(_ job: JobDefinition) {
        self.init(variants: job.variants, options: job.options, headers: job.headers, priority: job.priority)
    }
}

extension JobDefinition {
    fileprivate func changed(to settings: ItemSettings) -> JobDefinition {
        JobDefinition(
            id: id, variants: settings.variants, options: settings.options, headers: settings.headers,
            priority: min(max(settings.priority, -100), 100), order: order, problem: problem,
            hasOwnPriority: hasOwnPriority || settings.priority != priority)
    }
}

extension DelegatedRequest {
    /// The job's headers are meant for the URL's own server. As after redirects, they are not sent to another server,
    /// unless the delegate sets `keepsHeaders`.
    fileprivate func headers(after asked: DelegatedRequest) -> [String: String] {
        guard !keepsHeaders, !Downloader.haveSameOrigin(url, asked.url) else { return headers }
        return headers.filter { asked.headers[$0.key] != $0.value }
    }
}

extension DelegatedResponse {
    fileprivate init(_ response: DownloadResponse, url: String) {
        self.init(
            url: url, finalURL: response.finalURL, status: response.status, contentType: response.contentType,
            etag: response.etag, lastModified: response.lastModified)
    }
}

extension BlobFile {
    fileprivate func contents(_ size: Int64) throws -> [UInt8] {
        try [UInt8](unsafeUninitializedCapacity: Int(size)) { buffer, count in
            while count < Int(size) {
                let rest = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[count...])
                let read = try descriptor.read(fromAbsoluteOffset: Int64(count), into: rest)
                if read == 0 { break }
                count += read
            }
        }
    }
}
