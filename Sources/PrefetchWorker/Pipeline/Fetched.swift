internal import ContentCache
internal import Download
internal import Jobs
internal import Synchronization
internal import SystemPackage

/// What a fetch brought, shared by all items that wanted it.
indirect enum Fetched: Sendable {
    case source(FetchedSource)
    /// What is cached is still current.
    case notModified(DownloadResponse)
    case failed(FetchFailure)
    /// Sent away to make room for other hosts; which host was busy.
    case crowded(String)
}

/// A source that has arrived whole: an unnamed file in the cache's file system, hashed on the way.
final class FetchedSource: Sendable {
    let file: BlobFile
    let hash: BlobHash
    let size: Int64
    let response: DownloadResponse
    /// The downloader's own record of it, held so that it counts as outstanding until it was used.
    /// None of what didn't come over the network.
    let receipt: BodyFile?
    /// What its first bytes say it is; nil where only a decoder can tell.
    let format: String?

    private init(_ old: FetchedSource, file: BlobFile, hash: BlobHash, size: Int64) {
        self.file = file
        self.hash = hash
        self.size = size
        response = old.response
        receipt = old.receipt
        format = nil
    }

    init(local blob: PendingBlob) {
        file = blob.file
        hash = blob.hash
        size = blob.size
        response = DownloadResponse.local(bytes: blob.size)
        receipt = nil
        format = nil
    }

    /// The same answer with other bytes.
    func replaced(
        by bytes: [UInt8], in cache: ContentCache, _ budget: CacheBudget,
    ) throws(FetchFailure) -> FetchedSource {
        let file = try budget.makeFile(for: Int64(bytes.count), in: cache)
        do {
            try file.descriptor.writeAll(bytes)
            return FetchedSource(self, file: file, hash: BlobHash(of: bytes), size: Int64(bytes.count))
        } catch {
            throw FetchFailure(failure: .diskError, message: "The delegate's bytes can't be stored: \(error)")
        }
    }

    init?(_ body: BodyFile, _ response: DownloadResponse) {
        guard let hash = BlobHash(body.sha256) else { return nil }
        self.hash = hash
        size = body.size
        file = BlobFile(owning: body.takeDescriptor())
        file.companion.withLock { $0 = body.room }
        receipt = body
        format = body.kind
        self.response = response
    }
}

struct FetchFailure: Error, Sendable {
    let failure: FailureClass
    let message: String
    /// What the origin asked for, in milliseconds.
    var retryAfter: Int64?
    /// What HTTP said, when it came that far.
    var response: DownloadResponse?
    /// Whose failure it is, where that may be another host than the URL's.
    var host: String?
    /// Whether a request has failed, and not just the wait for one.
    var hasAsked = true
    /// Whether another request would bring the same.
    var isFinal = false
}

extension FetchFailure {
    init(_ error: DownloadFailure) {
        failure = FailureClass(error.code)
        message = error.message
        response = error.response
        host = error.host
        retryAfter = error.retryAfter.map { Int64($0.components.seconds) * 1_000 }
    }
}

extension FailureClass {
    init(_ code: DownloadFailure.Code) {
        self =
            switch code {
            case .dns: .dns
            case .connect: .connect
            case .timeout: .timeout
            case .connectionLost: .connectionLost
            case .tlsHandshake: .tlsHandshake
            case .tlsCertificate: .tlsCertificate
            case .http(let status): .http(status)
            case .tooManyRedirects: .tooManyRedirects
            case .invalidURL: .invalidURL
            case .forbiddenAddress: .forbiddenAddress
            case .tooLarge: .tooLarge
            case .truncated: .truncated
            case .refusedBody(let name): FailureClass(rawValue: name) ?? .badImage
            case .disk(let errno): errno == .noSpace || errno == .diskQuotaExceeded ? .diskFull : .diskError
            case .cancelled, .crowded: .cancelled
            case .optOut: .optOut
            case .invalidRequest: .delegate
            case .internalError: .connectionLost
            }
    }
}
