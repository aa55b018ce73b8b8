internal import ContentCache
internal import Download
internal import Jobs
internal import Logging
internal import SystemPackage

/// What the program's delegate has a say in. What it throws is a failure of class `delegate`.
extension Pipeline {
    /// Asks the delegate, where there is one that wants to be asked.
    private func ask<Answer: Sendable>(
        _ hook: DelegateHook, _ question: (any WorkerDelegate) async throws -> Answer,
    ) async throws(FetchFailure) -> Answer? {
        guard let delegate, delegate.hooks.contains(hook) else { return nil }
        do {
            return try await question(delegate)
        } catch CommandFailure.cancelled {
            throw FetchFailure(failure: .cancelled, message: "The delegate was not waited for.")
        } catch CommandFailure.failed(let message) {
            throw FetchFailure(failure: .delegate, message: message)
        } catch {
            throw FetchFailure(failure: .delegate, message: "The delegate failed: \(error)")
        }
    }

    func delegatedKey(_ item: ClaimedItem) async throws(FetchFailure) -> String? {
        try await ask(.cacheKey) { try await $0.cacheKey(of: item.url, job: item.job) } ?? nil
    }

    /// The end of an item that the delegate refuses; nil where it may go on.
    func denied(_ item: ClaimedItem) async throws(FetchFailure) -> ItemResult? {
        guard try await ask(.allow, { try await $0.allows(item.url, job: item.job) }) == false else { return nil }
        return .failed(FailureRecord(.denied, "The delegate said no."))
    }

    func delegated(_ request: DownloadRequest, _ item: ClaimedItem) async throws(FetchFailure) -> DownloadRequest {
        let headers = Dictionary(request.headers.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
        let asked = DelegatedRequest(url: request.url, headers: headers)
        guard let answer = try await ask(.request, { try await $0.request(asked, job: item.job) }), answer != asked
        else {
            return request
        }
        var request = request
        request.url = answer.url
        request.headers = answer.headers(after: asked).sorted { $0.key < $1.key }.map {
            (name: $0.key, value: $0.value)
        }
        return request
    }

    /// What the delegate makes of what came.
    func delegated(_ source: FetchedSource, _ item: ClaimedItem) async throws(FetchFailure) -> FetchedSource {
        let response = DelegatedResponse(source.response, url: item.url)
        let status = try await ask(.response) { try await $0.status(of: response, job: item.job) }
        if let status, !(100...599).contains(status) {
            throw FetchFailure(
                failure: .delegate, message: "The delegate takes the response for a \(status), which is no HTTP status."
            )
        }
        if let status, !(200...299).contains(status) {
            throw FetchFailure(
                failure: .http(status), message: "The delegate takes the response for a \(status).",
                response: source.response)
        }
        let changed = try await ask(.bytes) { delegate in
            let bytes = await reading.run { Result { try source.file.contents(source.size) } }
            return try await delegate.bytes(bytes.get(), of: item.url, job: item.job)
        }
        guard let bytes = changed ?? nil else { return source }
        return try await reading.run { [budget, cache] () -> Result<FetchedSource, FetchFailure> in
            Result { () throws(FetchFailure) in try source.replaced(by: bytes, in: cache, budget) }
        }.get()
    }

    /// Whether a listed URL is asked for all the same.
    func overrules(_ entry: BlacklistEntry) async throws(FetchFailure) -> Bool {
        try await ask(.blacklist) { try await $0.blacklists(entry.url, for: entry.failure) } == false
    }

    /// A failure with the delegate's word on whether it is listed.
    func judged(_ record: FailureRecord, _ url: String) async -> FailureRecord {
        var record = record
        do throws(FetchFailure) {
            record.isListed = try await ask(.blacklist) { try await $0.blacklists(url, for: record.failure) } ?? nil
        } catch {
            logger.warning("The delegate has no word on the blacklist.", metadata: ["error": "\(error.message)"])
        }
        return record
    }
}

extension DelegatedRequest {
    /// What the job has for the URL's own server is not for another, as it isn't along a redirect; the delegate may know
    /// better.
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
