public import Core
internal import FoundationEssentials
internal import Glibc
internal import Synchronization

extension DatabaseGate {
    /// The machine's clock.
    public static let wallClock: @Sendable () -> WallTime = {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return WallTime(milliseconds: Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000)
    }

    /// Milliseconds since the machine was started, including suspended time.
    public static let bootClock: @Sendable () -> Int64 = {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// The current readings of both clocks.
    ///
    /// PostgreSQL's server has one clock for all machines, which is taken as it is.
    var reading: CacheClock {
        let wall = now()
        guard sqlite != nil else {
            return CacheClock(boot: "server", uptime: wall.milliseconds, wall: wall, shift: 0)
        }
        return CacheClock(boot: CacheClock.boot, uptime: uptime(), wall: wall, shift: 0)
    }

    /// Detects jumps of the machine's clock. Called when a worker or a collection starts, and every minute.
    public func keepCacheClock() async throws(JobsError) {
        try await keepCacheClock(at: reading)
    }

    func keepCacheClock(at reading: CacheClock) async throws(JobsError) {
        try await write { db in
            let before = try CacheClock.written(in: db)
            let clock = before?.moved(to: reading) ?? reading
            let text = String(decoding: try JSONEncoder().encode(clock), as: UTF8.self)
            try CacheProperty.set(CacheClock.property, to: text, in: db)
            db.postgres?.clock = nil
        }
    }

    /// Records the clock at once if the machine's clock has jumped since the previous call.
    ///
    /// - Parameter last: the result of the previous call; nil for the first.
    public func keepCacheClock(unlessStill last: Int64?) async throws(JobsError) -> Int64 {
        let reading = reading
        let offset = reading.wall.milliseconds - reading.uptime
        if let last, abs(offset - last) > CacheClock.tolerance { try await keepCacheClock(at: reading) }
        return offset
    }

    /// The current time of the cache's clock.
    public func cacheTime() async throws(JobsError) -> SteadyTime {
        let reading = reading
        return try await read { db in try reading.time(in: db) }
    }

}

extension CacheClock {
    fileprivate static let property = "clock"

    /// This reading by the cache's clock; a jump since the clock was last recorded does not count.
    ///
    /// Leases, waits and the blacklist use it as well, so that none expires when the machine's clock is set.
    func time(in db: Connection) throws -> SteadyTime { try moment(in: db).steady }

    /// This reading by both clocks.
    func moment(in db: Connection) throws -> Moment {
        Moment(wall: wall, jumps: try Self.written(in: db)?.moved(to: self).shift ?? 0)
    }

    /// The clock as it was last recorded.
    fileprivate static func written(in db: Connection) throws -> CacheClock? {
        guard let text = try text(in: db) else { return nil }
        return latest.withLock { latest in
            if latest.text != text {
                // Best effort: an unreadable clock is started again, and only jumps before that are forgotten.
                latest = (text, try? JSONDecoder().decode(CacheClock.self, from: Data(text.utf8)).clamped)
            }
            return latest.clock
        }
    }

    /// A connection to PostgreSQL reads it once, and again after `keepCacheClock`: the server's clock has no jumps that a
    /// transaction would have to know at once, and each read is a round trip.
    private static func text(in db: Connection) throws -> String? {
        guard let connection = db.postgres else { return try CacheProperty.value(property, in: db) }
        if let known = connection.clock { return known }
        let text = try CacheProperty.value(property, in: db)
        connection.clock = .some(text)
        return text
    }

    /// The text that was read last. Each transaction reads the clock, which changes once a minute.
    private static let latest = Mutex<(text: String, clock: CacheClock?)>(("", nil))
}

/// Stored facts about the cache, in the table `cache_properties`.
enum CacheProperty {
    /// The name by which an index and its cache recognize each other.
    static let name = "cache-id"

    static func value(_ name: String, in db: Connection) throws -> String? {
        try db.text("SELECT value FROM cache_properties WHERE name = ?", [name])
    }

    static func set(_ name: String, to value: String?, in db: Connection) throws {
        guard let value else {
            try db.run("DELETE FROM cache_properties WHERE name = ?", [name])
            return
        }
        try db.run("INSERT OR REPLACE INTO cache_properties VALUES (?, ?)", [name, value])
    }
}
