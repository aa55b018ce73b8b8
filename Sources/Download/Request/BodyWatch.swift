public import SystemPackage

/// Looks at a body while it arrives, now and then.
public struct BodyWatch: Sendable {
    /// The least time between two looks, and before the first.
    public let interval: Duration
    /// Called on the download thread, which it must not hold up.
    public let look: @Sendable (PartialBody) -> Void

    public init(every interval: Duration, look: @escaping @Sendable (PartialBody) -> Void) {
        self.interval = interval
        self.look = look
    }
}

/// What has arrived of a body so far.
public struct PartialBody: Sendable {
    /// The body's file. The receiver closes it.
    public let file: FileDescriptor
    /// Bytes that are in it.
    public let received: Int64
    /// Bytes that were announced; nil where the origin didn't say, or said it of what has to be decoded first.
    public let expected: Int64?
}
