public import Core

/// How a download ended. Every download ends in exactly one of these.
///
/// `Body` is the file that the bytes arrived in; later on, the source that was made of it.
public indirect enum DownloadOutcome<Body: Sendable>: Sendable {
    case body(Body, DownloadResponse)
    case notModified(DownloadResponse)
    /// It waited for this host, which is blocked or which many others wait for, and was sent away.
    case crowded(String)
    case failed(Failure)
}
