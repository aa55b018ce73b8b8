public import Core
internal import FoundationEssentials
internal import Glibc

/// The current file of a URL and a variant.
public struct CacheEntry: Hashable, Sendable, Codable {
    /// The name of the source among the variants.
    public static let original = "original"

    public let key: String
    public let variant: String
    public let blob: String
    public let format: String

    public init(key: String, variant: String, blob: String, format: String) {
        self.key = key
        self.variant = variant
        self.blob = blob
        self.format = format
    }
}

/// The cache's totals, which are counted at each change.
public struct CacheTotals: Hashable, Sendable, Codable {
    public var blobs: Int64
    public var bytes: Int64
    /// Bytes that live workers have reserved, or had reserved when they died.
    public var reservedBytes: Int64
    /// Items whose source's bytes came from the cache, and all others.
    public var hits: Int64
    public var misses: Int64
    /// The hits whose source was read from memory, and the misses that a loader or a file delivered.
    public var fromMemory: Int64
    public var fromLoaders: Int64
    public var fromFiles: Int64
    /// Bytes of sources that an origin confirmed with a 304 instead of sending them.
    public var revalidatedBytes: Int64
    /// Bytes of sources that were downloaded and already existed in the cache.
    public var dedupedBytes: Int64
    public var evictedBlobs: Int64
    public var evictedBytes: Int64
    /// Files that were discarded because the disk did not confirm them.
    public var failedSyncs: Int64

    /// The number of items that ended well, by where their sources came from.
    public func count(from origin: SourceOrigin) -> Int64 {
        switch origin {
        case .network: Self.rest(of: misses, without: fromLoaders, fromFiles)
        case .loader: fromLoaders
        case .file: fromFiles
        case .disk: Self.rest(of: hits, without: fromMemory)
        case .memory: fromMemory
        }
    }

    /// Never below zero: a user's SQL may have changed the counters.
    private static func rest(of all: Int64, without parts: Int64...) -> Int64 {
        parts.reduce(max(0, all)) { rest, part in rest - min(rest, max(0, part)) }
    }
}

/// A file of the cache that was found missing or damaged and is not restored yet.
public struct LostFile: Hashable, Sendable, Codable {
    public let key: String
    /// The variant's name; empty for the source.
    public let variant: String
    public let blob: String

    public init(key: String, variant: String, blob: String) {
        self.key = key
        self.variant = variant
        self.blob = blob
    }
}

/// A URL on the blacklist, which is not requested.
public struct BlacklistEntry: Hashable, Sendable, Codable {
    public internal(set) var url: String
    public let host: String
    public let failure: FailureClass
    public let httpStatus: Int?
    public let message: String?
    public let count: Int
    public let firstAt: Int64
    public let lastAt: Int64
    public let expiresAt: WallTime
    /// The setting that refused the URL, as `name=value`: the entry is in force as long as the setting is the same.
    public internal(set) var setting: String?
}

/// A blob in the index.
public struct IndexedBlob: Hashable, Sendable {
    public let hash: String
    /// Bytes.
    public let size: Int64
    /// When its file was last published, by the cache's clock.
    public let modifiedAt: SteadyTime
}

/// The cache's own clock: wall-clock time without its jumps, so that no file looks unused for years after the machine's
/// clock was set.
///
/// Within one boot, the kernel's uptime tells how much time has passed. Across boots this is unknown: a step back, or
/// forward by more than 400 days, counts as no time, so files stay rather too long than too short.
struct CacheClock: Codable, Hashable, Sendable {
    var boot: String
    /// Milliseconds since the boot, including suspended time.
    var uptime: Int64
    /// The machine's clock.
    var wall: WallTime
    /// Milliseconds to subtract from the machine's clock.
    var shift: Int64

    /// The most of a number that is read from the database, where any program may have changed it: sums of three stay
    /// within 64 bits.
    private static let limit: Int64 = 1 << 52

    /// The clock with numbers that can be added.
    var clamped: CacheClock {
        func clamp(_ number: Int64) -> Int64 { min(max(number, -Self.limit), Self.limit) }
        return CacheClock(
            boot: boot, uptime: clamp(uptime), wall: WallTime(milliseconds: clamp(wall.milliseconds)),
            shift: clamp(shift))
    }

    static let tolerance: Int64 = 600_000
    static let longestAbsence: Int64 = 400 * 86_400_000

    /// This clock, moved on to the reading `now`.
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

    /// Best effort: without /proc all boots look like one, and a restart looks like a jump of the clock.
    static let boot =
        ((try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)) ?? "unknown")
        .filter { $0 != "\n" }
}
