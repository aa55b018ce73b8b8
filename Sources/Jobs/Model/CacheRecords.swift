public import Core
internal import FoundationEssentials
internal import GRDB
internal import Glibc

/// The file that stands for a URL and a variant's name now.
public struct CacheEntry: Hashable, Sendable, Codable {
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

/// The cache in numbers, all of them counted as things happen.
public struct CacheTotals: Hashable, Sendable, Codable {
    public var blobs: Int64
    public var bytes: Int64
    /// Bytes that workers are about to publish, or had been when they died.
    public var reservedBytes: Int64
    /// Items that ended without the network, and with it.
    public var hits: Int64
    public var misses: Int64
    /// Bytes of sources that an origin confirmed by a 304 instead of sending them.
    public var revalidatedBytes: Int64
    /// Bytes that were there already when they were to be published.
    public var dedupedBytes: Int64
    public var evictedBlobs: Int64
    public var evictedBytes: Int64
    /// Files that were given up because the disk did not confirm them.
    public var failedSyncs: Int64
}

/// A file of the cache that turned out missing or damaged, and is not there again yet.
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

/// A URL that will not be asked for.
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
    /// The setting that has refused it, as `name=value`: the entry holds as long as that is the same.
    public internal(set) var setting: String?
}

/// A blob as the index knows it.
public struct IndexedBlob: Hashable, Sendable {
    public let hash: String
    /// Bytes.
    public let size: Int64
    /// When its file was last published, by the cache's clock.
    public let modifiedAt: SteadyTime
}

/// The cache's own clock: wall-clock time without its jumps, so that no file looks unused for years after a person has
/// set the machine's clock.
///
/// Within one boot the kernel's uptime says how much time has really passed. Across boots that is unknown; time that
/// goes back then, or forward by more than a year, counts as no time at all: files stay too long rather than too short.
struct CacheClock: Codable, Hashable, Sendable {
    var boot: String
    /// Since the boot, in milliseconds, time asleep included.
    var uptime: Int64
    /// By the machine's clock.
    var wall: WallTime
    /// Milliseconds to subtract from the machine's clock.
    var shift: Int64

    static let tolerance: Int64 = 600_000
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

    /// Without /proc all boots look like one, and a restart like a jump of the clock.
    static let boot =
        ((try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)) ?? "unknown")
        .filter { $0 != "\n" }
}
