public import Core

/// Serves URLs that no web server does: of a scheme of the program's own, a database, an archive.
///
/// Calls come from any thread, as many at once as there may be downloads. What it brings is judged like a download: by the
/// limits of the worker, by its first bytes, and by the job's options.
public protocol ImageLoader: Sendable {
    /// Whether it serves this URL. Asked before each fetch, so it must not wait for anything.
    func canLoad(_ url: String) -> Bool

    /// Brings the picture, piece by piece. The task is cancelled when no item needs the picture any more.
    ///
    /// - Throws: a ``Failure`` ends the item with that class, which decides about further tries and the blacklist; every
    ///   other error is one of class `delegate`. Errors of `body` are passed on as they are.
    func load(_ request: LoaderRequest, into body: any LoaderBody) async throws -> LoaderResponse
}

public struct LoaderRequest: Sendable, Hashable {
    public let url: String
    /// The job's headers, as the delegate has left them.
    public let headers: [String: String]
    /// The version that is cached, where the job asks whether it is still current: see ``LoaderResponse/notModified``.
    public let etag: String?
    public let lastModified: String?

    public init(url: String, headers: [String: String] = [:], etag: String? = nil, lastModified: String? = nil) {
        (self.url, self.headers, self.etag, self.lastModified) = (url, headers, etag, lastModified)
    }
}

public struct LoaderResponse: Sendable, Hashable {
    public var contentType: String?
    /// The version, for the next ``LoaderRequest``.
    public var etag: String?
    public var lastModified: String?
    fileprivate(set) var isNotModified = false

    public init(contentType: String? = nil, etag: String? = nil, lastModified: String? = nil) {
        (self.contentType, self.etag, self.lastModified) = (contentType, etag, lastModified)
    }

    /// The cached version is still current; no body was written.
    public static let notModified: LoaderResponse = {
        var response = LoaderResponse()
        response.isNotModified = true
        return response
    }()
}

/// Where a loader writes a picture's bytes, in order.
public protocol LoaderBody: Sendable {
    /// Announces the length, for progress, and so that a picture that is too large is refused at once.
    func expect(_ bytes: Int64) throws(Failure)

    /// Writes the next bytes. Returns when there is room for more.
    ///
    /// - Throws: when the task was cancelled, and when the picture is refused.
    func write(_ bytes: [UInt8]) async throws(Failure)
}
