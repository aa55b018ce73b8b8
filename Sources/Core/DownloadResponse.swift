/// The response to a download, at the end of all redirects.
public struct DownloadResponse: Sendable, Equatable {
    public var status: Int
    /// The URL that answered, without credentials and fragment.
    public var finalURL: String
    public var redirects = 0
    public var etag: String?
    public var lastModified: String?
    public var contentType: String?
    public var cacheControl: String?
    public var expires: String?
    public var date: String?
    public var age: String?
    /// Values of `X-Robots-Tag`, one header a line: sites use it to opt out of uses of their images.
    public var robots: String?
    public var vary: String?
    /// `1.0`, `1.1` or `2`; nil where there was no response.
    public var httpVersion: String?
    public var timings = Timings()
    /// Bytes of the body as they were sent, before content decoding.
    public var bytesReceived: Int64 = 0
    /// Announced bytes of a body that was rejected early.
    public var bytesSaved: Int64 = 0
    /// Whether the response announced where its body ends, and the whole body came. A body that ends with its
    /// connection may have broken off.
    public var isWhole = false
    /// The announced length of the body; nil if the response announced none.
    public var announcedBytes: Int64?
    /// The numeric address that was connected to; empty when there was no connection.
    public var primaryAddress = ""

    public init(status: Int, finalURL: String) {
        self.status = status
        self.finalURL = finalURL
    }

    /// For a source that didn't come over the network.
    public static func local(bytes: Int64) -> DownloadResponse {
        var response = DownloadResponse(status: 200, finalURL: "")
        response.bytesReceived = bytes
        (response.announcedBytes, response.isWhole) = (bytes, true)
        return response
    }

    /// How long each step of the last hop took; a step that a reused connection saved is zero.
    public struct Timings: Sendable, Equatable {
        public var dns = Duration.zero
        public var connect = Duration.zero
        public var tls = Duration.zero
        /// Time from the start of the last hop to its first byte.
        public var firstByte = Duration.zero
        /// Time from the start of the first hop to the end.
        public var total = Duration.zero

        public init() {}
    }
}

/// The inspector's verdict on a body by its first bytes, while the others are still arriving.
public enum BodyVerdict: Sendable {
    /// The inspector needs more bytes.
    case undecided
    case accept
    /// Accepts the body as a kind, such as a format's name.
    case acceptAs(String)
    /// Ends the transfer with this failure.
    case refuse(Failure)
}
