internal import ContentCache
internal import Core
internal import Download
internal import Jobs
internal import Synchronization

/// A complete source: an unnamed file in the cache's file system, hashed as it arrived.
final class FetchedSource: Sendable {
    let file: BlobFile
    let hash: BlobHash
    let size: Int64
    let response: DownloadResponse
    /// The downloader's record of the body, held so that the body counts as unconsumed until it was used. Nil for a
    /// source that did not come over the network.
    let receipt: BodyFile?
    let origin: SourceOrigin
    /// The format by its first bytes; nil if only a decoder can recognise it.
    let format: String?

    init?(_ body: BodyFile, _ response: DownloadResponse) {
        guard let hash = BlobHash(body.sha256) else { return nil }
        self.hash = hash
        size = body.size
        file = BlobFile(owning: body.takeDescriptor())
        file.reservation.withLock { $0 = body.reservation as? CacheReservation }
        receipt = body
        origin = .network
        format = body.kind
        self.response = response
    }

    /// - Parameter old: the source whose body it replaces.
    convenience init(_ blob: PendingBlob, inPlaceOf old: FetchedSource) {
        self.init(blob, from: old.origin, response: old.response, receipt: old.receipt)
    }

    /// - Parameter response: nil for a source that needed no network.
    init(
        _ blob: PendingBlob, from origin: SourceOrigin, response: DownloadResponse? = nil, receipt: BodyFile? = nil,
    ) {
        self.origin = origin
        file = blob.file
        hash = blob.hash
        size = blob.size
        self.response = response ?? DownloadResponse.local(bytes: blob.size)
        self.receipt = receipt
        format = nil
    }
}

extension DownloadResponse {
    /// Whether another request would bring the same truncated bytes: the announced length has arrived, or the whole
    /// body of a version with an ETag. If there was neither, one more request is made.
    func isFinal(attempts: Int) -> Bool {
        attempts > 0 || (isWhole && (announcedBytes != nil || etag != nil))
    }
}

extension TryRecord {
    /// The record of a request; nil if none was made.
    init?(_ outcome: DownloadOutcome<FetchedSource>, at now: WallTime) {
        switch outcome {
        case .shed: return nil
        case .body(_, let response), .notModified(let response): self.init(response, at: now)
        case .failed(let failure):
            if failure.failureClass == .cancelled { return nil }
            if let response = failure.response { self.init(response, at: now) } else { self.init(at: now) }
            self.failure = failure.failureClass.rawValue
            message = failure.message
        }
    }

    private init(_ response: DownloadResponse, at now: WallTime) {
        let timings = response.timings
        self.init(at: now - timings.total.milliseconds)
        httpStatus = response.status
        received = response.bytesReceived
        saved = response.bytesSaved > 0 ? response.bytesSaved : nil
        redirects = response.redirects
        address = response.primaryAddress
        httpVersion = response.httpVersion
        dns = timings.dns.microseconds
        connect = timings.connect.microseconds
        tls = timings.tls.microseconds
        firstByte = timings.firstByte.microseconds
        total = timings.total.microseconds
    }
}
