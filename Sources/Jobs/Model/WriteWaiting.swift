/// How long calls wait: for other programs' writes, and for a PostgreSQL server that can't be reached.
public struct WriteWaiting: Sendable {
    /// Milliseconds; 0 to fail at once.
    public var limit: Int64
    /// Gets a sentence when a write has waited for two seconds (with SQLite it names the program that holds the lock),
    /// and one each when an outage of the server begins and ends.
    public var announce: (@Sendable (String) -> Void)?
    /// After a request to stop: the maximum milliseconds that a write waits, if `limit` is not lower. Nil before such a
    /// request.
    public var limitOfStop: @Sendable () -> Int64? = { nil }

    /// Whether calls wait for a server that can't be reached, until a stop is requested. Workers do; a command
    /// tries once.
    public var outlastsOutages = false

    /// 40 s are longer than any reasonable statement of a user.
    public init(limit: Int64 = 40_000, announce: (@Sendable (String) -> Void)? = nil) {
        self.limit = limit
        self.announce = announce
    }

    /// For commands that only read: their small writes, such as a file's last use, may be dropped.
    public static let never = WriteWaiting(limit: 0)
}
