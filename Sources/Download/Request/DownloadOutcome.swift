public import Core

/// How a download ended. Every download ends in exactly one of these.
///
/// `Body` is the file with the bytes; in later stages, the source made of it.
public indirect enum DownloadOutcome<Body: Sendable>: Sendable {
    case body(Body, DownloadResponse)
    case notModified(DownloadResponse)
    /// The request waited for this host and was sent away, because the host is blocked or too many others wait for it.
    case shed(String)
    case failed(Failure)
}
