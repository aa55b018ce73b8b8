import ArgumentParser
import Jobs
import PrefetchWorker

enum CacheSizeSettings {
    static let maxSize = Setting.bytes(
        "cache-max-size", "0", "Bytes that the cache may hold at any moment; 0 for no limit.")
    static let maxAge = Setting.time(
        "cache-max-age", "7d", "How long a cached file stays after its last use; 'never' for ever, 0 for not at all.",
        forEver: ["never", "-1"])
    static let all: [any NamedSetting] = [maxSize, maxAge]
}

/// The cache's maximum size and age.
struct CacheSizeOptions: ParsableArguments {
    @Option(CacheSizeSettings.maxSize) var cacheMaxSize: Int64?
    @Option(CacheSizeSettings.maxAge) var cacheMaxAge: Int64?

    fileprivate func apply(to policy: inout CachePolicy, _ settings: Settings) throws(SettingsError) {
        policy.maxAge = try settings.value(CacheSizeSettings.maxAge, cacheMaxAge)
        let most = try settings.value(CacheSizeSettings.maxSize, cacheMaxSize)
        // 0 means no limit, as in a configuration without this setting.
        policy.maxBytes = most == 0 ? nil : most
    }
}

enum CacheSettings {
    static let lowWater = Setting.whole(
        "cache-low-water", 50, in: 0...100, "Low-water mark: percentage of --cache-max-size to evict down to.")
    static let expireBy = Setting<CacheEviction.Expiry>.choice(
        "expire-by", .used,
        "The time from which --cache-max-age counts: when a file was last used, modified or created.",
        placeholder: "event")
    static let evictFirst = Setting<CachePolicy.First>.choice(
        "evict-first", .sources, "The files that a full cache evicts first: sources, variants or oldest.",
        placeholder: "kind")
    static let orphanGrace = Setting.time(
        "orphan-grace", "10m", "How long files that are not in the index are kept.")
    static let quarantineAge = Setting.time(
        "quarantine-age", "30d", "How long damaged files are kept in quarantine; 'never' for ever.",
        forEver: ["never", "-1"])
    static let all: [any NamedSetting] = [lowWater, expireBy, evictFirst, orphanGrace, quarantineAge]
}

/// The order of eviction, and how long leftovers stay.
struct CacheOptions: ParsableArguments {
    @Option(CacheSettings.lowWater) var cacheLowWater: Int?
    @Option(CacheSettings.expireBy) var expireBy: CacheEviction.Expiry?
    @Option(CacheSettings.evictFirst) var evictFirst: CachePolicy.First?
    @Option(CacheSettings.orphanGrace) var orphanGrace: Int64?
    @Option(CacheSettings.quarantineAge) var quarantineAge: Int64?

    func policy(_ size: CacheSizeOptions, _ settings: Settings) throws(SettingsError) -> CachePolicy {
        var policy = CachePolicy()
        try size.apply(to: &policy, settings)
        policy.lowWater = Double(try settings.value(CacheSettings.lowWater, cacheLowWater)) / 100
        policy.expiry = try settings.value(CacheSettings.expireBy, expireBy)
        policy.first = try settings.value(CacheSettings.evictFirst, evictFirst)
        policy.orphanGrace = try settings.value(CacheSettings.orphanGrace, orphanGrace)
        policy.quarantineAge = try settings.value(CacheSettings.quarantineAge, quarantineAge)
        return policy
    }
}
