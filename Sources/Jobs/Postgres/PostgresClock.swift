internal import Core
internal import Synchronization

/// The server's clock, which all machines share. Between two readings, the machine's steady clock counts on.
final class PostgresClock: Sendable {
    private let uptime: @Sendable () -> Int64
    /// The server's time less the uptime, and the uptime of the last reading; in milliseconds.
    private let reading = Mutex<(offset: Int64, at: Int64)?>(nil)

    /// Tests count on a clock of their own.
    static let isIgnored = Atomic(false)

    /// The clocks of two machines drift apart by some milliseconds in a minute.
    private static let longest: Int64 = 30_000

    init(uptime: @escaping @Sendable () -> Int64) { self.uptime = uptime }

    /// - Parameter machine: the machine's own clock, for the time before the first reading.
    func correcting(_ machine: @escaping @Sendable () -> WallTime) -> @Sendable () -> WallTime {
        if Self.isIgnored.load(ordering: .relaxed) { return machine }
        return { [self] in
            reading.withLock { $0.map { WallTime(milliseconds: $0.offset + uptime()) } } ?? machine()
        }
    }

    var isOld: Bool { reading.withLock { $0.map { uptime() - $0.at > Self.longest } ?? true } }

    /// Reads the server's clock, and assumes that the server read it halfway through the request.
    func read(_ connection: PostgresConnection) throws(PostgresError) {
        let start = uptime()
        let server = try connection.script("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT")
            .integer(0, 0)
        let end = uptime()
        reading.withLock { $0 = (server - (start + end) / 2, end) }
    }
}
