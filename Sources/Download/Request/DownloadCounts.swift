/// The progress of a running transfer.
public struct DownloadProgress: Sendable, Hashable {
    /// ``DownloadRequest/id``.
    public let id: Int64
    /// Bytes of the body before content decoding.
    public let received: Int64
    /// Nil if the origin announced no length.
    public let expected: Int64?
}

/// The downloader's counts.
public struct DownloadCounts: Sendable, Hashable {
    /// Running transfers, including stalled ones.
    public var running = 0
    /// Stalled transfers: they have received nothing for a while, and their slots go to other hosts.
    public var stalled = 0
    public var waiting = 0
    /// Free slots for transfers; requests to busy hosts may wait even so.
    public var freeSlots = 0
    /// Complete bodies that are not consumed yet.
    public var unconsumed = 0
    /// Whether there are so many unconsumed bodies that no transfer starts although a slot is free.
    public var isHeldByBodies = false
    /// Bytes of bodies before content decoding, since the start.
    public var bytes: Int64 = 0
    /// Announced bytes of bodies that were rejected early.
    public var saved: Int64 = 0
}

/// A waiting request.
public struct DownloadWait: Sendable, Hashable {
    /// ``DownloadRequest/id``.
    public let id: Int64
    public let host: String
}
