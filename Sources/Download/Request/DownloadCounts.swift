/// How far a transfer has come that has run for a while.
public struct DownloadProgress: Sendable, Hashable {
    /// ``DownloadRequest/id``.
    public let id: Int64
    /// Bytes of the body as it is sent.
    public let received: Int64
    /// Nil where the origin didn't say.
    public let expected: Int64?
}

/// The downloader in numbers.
public struct DownloadCounts: Sendable, Hashable {
    /// Transfers, silent ones included.
    public var running = 0
    /// Transfers that have got nothing for a while; they keep no other host waiting.
    public var silent = 0
    public var waiting = 0
    /// Free slots for transfers; requests to busy hosts may wait all the same.
    public var room = 0
    /// Bodies that arrived and are not consumed yet.
    public var unconsumed = 0
    /// Bytes of bodies as they were sent, since the start.
    public var bytes: Int64 = 0
    /// Announced bytes of bodies that were rejected early.
    public var saved: Int64 = 0
}

/// A request that waits in the queue.
public struct DownloadWait: Sendable, Hashable {
    /// ``DownloadRequest/id``.
    public let id: Int64
    public let host: String
}
