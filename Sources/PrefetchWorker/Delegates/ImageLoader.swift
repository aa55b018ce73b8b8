public import Core

/// Delivers pictures that no web server serves: for URLs of the program's own scheme, from a database or an archive.
///
/// Called from any thread, for at most as many URLs at once as there may be downloads. The worker checks a loaded
/// picture like a download: by the worker's limits, by the first bytes, and by the job's options.
public protocol ImageLoader: Sendable {
    /// Whether it serves this URL. Called before each fetch, so it must not block.
    func canLoad(_ url: String) -> Bool

    /// Loads the picture, piece by piece. The task is cancelled when no item needs the picture any more.
    ///
    /// - Throws: a ``Failure`` ends the item with that class, which decides about further tries and the blacklist. Any
    ///   other error has the class `delegate`. Errors of `body` are passed on unchanged.
    func load(_ request: LoaderRequest, into body: any LoaderBody) async throws -> LoaderResponse
}

public struct LoaderRequest: Sendable, Hashable {
    public let url: String
    /// The job's headers, after the delegate's changes.
    public let headers: [String: String]
    /// The version of the cached source, if the job revalidates it: see ``LoaderResponse/notModified``.
    public let etag: String?
    public let lastModified: String?

    public init(url: String, headers: [String: String] = [:], etag: String? = nil, lastModified: String? = nil) {
        (self.url, self.headers, self.etag, self.lastModified) = (url, headers, etag, lastModified)
    }
}

public struct LoaderResponse: Sendable, Hashable {
    public var contentType: String?
    /// The picture's version, which the next ``LoaderRequest`` gets.
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

/// Receives a picture's bytes from a loader, in order.
public protocol LoaderBody: Sendable {
    /// Announces the length, for the progress, and so that a picture that is too large is refused at once.
    func expect(_ bytes: Int64) throws(Failure)

    /// Writes the next bytes. Returns when there is space for more.
    ///
    /// - Throws: if the task was cancelled, or if the picture is refused.
    func write(_ bytes: [UInt8]) async throws(Failure)
}
