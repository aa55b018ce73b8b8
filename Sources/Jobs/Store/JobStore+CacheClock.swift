internal import FoundationEssentials
internal import GRDB
internal import Glibc

/// The cache's own clock: wall-clock time without its jumps, so that nothing looks unused for years because somebody set
/// the machine's clock.
///
/// Within one boot the kernel's uptime says how much time has really passed. Across boots nobody knows; time that goes back
/// then, or forward by more than a year, counts as no time at all: files stay too long rather than too short.
struct CacheClock: Codable, Hashable, Sendable {
    var boot: String
    /// Since the boot, in milliseconds, time asleep included.
    var uptime: Int64
    /// UTC milliseconds by the machine's clock.
    var wall: Int64
    /// What has to be taken from the machine's clock.
    var shift: Int64

    fileprivate static let tolerance: Int64 = 600_000
    static let longestAbsence: Int64 = 400 * 86_400_000

    /// The clock as it stands now, after this one was written down earlier.
    func moved(to now: CacheClock) -> CacheClock {
        var now = now
        now.shift = shift
        let jump: Int64
        if boot == now.boot {
            jump = (now.wall - wall) - (now.uptime - uptime)
            if abs(jump) > Self.tolerance { now.shift += jump }
        } else {
            jump = now.wall - wall
            if jump < 0 || jump > Self.longestAbsence { now.shift += jump }
        }
        return now
    }

    /// Without /proc there is one boot for ever, and the uptime starts anew: a jump, which is what it looks like.
    static let boot =
        ((try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)) ?? "unknown")
        .filter { $0 != "\n" }
}

extension JobStore {
    private static let clockProperty = "clock"

    /// Milliseconds since the machine was started, time asleep included.
    public static let bootClock: @Sendable () -> Int64 = {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// The clocks as they stand.
    var reading: CacheClock { CacheClock(boot: CacheClock.boot, uptime: uptime(), wall: now(), shift: 0) }

    /// Notices jumps of the machine's clock. Called when a worker or a collection starts, and every minute.
    public func keepCacheClock() async throws(JobsError) {
        try await keepCacheClock(at: reading)
    }

    func keepCacheClock(at reading: CacheClock) async throws(JobsError) {
        try await write { db in
            let before = try Self.cacheClock(in: db)
            let clock = before?.moved(to: reading) ?? reading
            let text = String(decoding: try JSONEncoder().encode(clock), as: UTF8.self)
            try Self.setCacheProperty(Self.clockProperty, to: text, in: db)
        }
    }

    /// The same at once where the machine's clock has jumped since `last`: SQL doesn't see that for itself.
    ///
    /// - Parameter last: what this gave the last time.
    public func keepCacheClock(unlessStill last: Int64?) async throws(JobsError) -> Int64 {
        let reading = reading
        let offset = reading.wall - reading.uptime
        if let last, abs(offset - last) > CacheClock.tolerance { try await keepCacheClock(at: reading) }
        return offset
    }

    /// Now, by the cache's own clock.
    public func cacheTime() async throws(JobsError) -> Int64 {
        let reading = reading
        return try await read { db in try Self.cacheTime(reading, in: db) }
    }

    /// A reading by the cache's own clock: a jump since it was last written down is none yet.
    ///
    /// Leases, waits and the blacklist go by it as well, so that nothing lapses because somebody set the machine's clock.
    static func cacheTime(_ reading: CacheClock, in db: Database) throws -> Int64 {
        reading.wall - (try cacheClock(in: db)?.moved(to: reading).shift ?? 0)
    }

    private static func cacheClock(in db: Database) throws -> CacheClock? {
        guard let text = try cacheProperty(clockProperty, in: db) else { return nil }
        // One that can't be read is started anew: it only says what happened since.
        return try? JSONDecoder().decode(CacheClock.self, from: Data(text.utf8))
    }
}
