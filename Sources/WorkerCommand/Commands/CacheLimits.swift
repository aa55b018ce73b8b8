import ArgumentParser
import Jobs
import PrefetchWorker

/// How much the cache may hold, for how long, and what goes first.
struct CacheLimits: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "How long a cached file stays after its last use (7d; 'never', or 0 for not at all).", valueName: "time"))
    var cacheMaxAge: String?

    @Option(help: "What that age is counted from: used, modified or created (used).")
    var expireBy: String?

    @Option(help: ArgumentHelp("Bytes the cache may hold, at any moment; 0 for no limit (0).", valueName: "bytes"))
    var cacheMaxSize: String?

    @Option(help: ArgumentHelp("What is left of them once it was full, in per cent (50).", valueName: "n"))
    var cacheLowWater: Int?

    @Option(help: "What goes first then: sources, variants or oldest (sources).")
    var evictFirst: String?

    @Option(
        help: ArgumentHelp("How long a file stays that the index doesn't know (10m).", valueName: "time"))
    var orphanGrace: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("How long damaged bytes stay in quarantine (30d; 'never').", valueName: "time"))
    var quarantineAge: String?

    func policy(_ settings: Settings) throws -> CachePolicy {
        var policy = CachePolicy()
        policy.maxAge = try settings.milliseconds(
            "cache-max-age", flag: cacheMaxAge, default: policy.maxAge, forEver: ["never", "-1"])
        let most = try settings.bytes("cache-max-size", flag: cacheMaxSize, default: 0)
        // As in a configuration that says nothing of it.
        policy.maxBytes = most == 0 ? nil : most
        policy.lowWater =
            Double(try settings.number("cache-low-water", flag: cacheLowWater, default: 50, in: 0...100)) / 100
        policy.orphanGrace = try settings.milliseconds("orphan-grace", flag: orphanGrace, default: policy.orphanGrace)
        policy.quarantineAge = try settings.milliseconds(
            "quarantine-age", flag: quarantineAge, default: policy.quarantineAge, forEver: ["never", "-1"])
        policy.expiry = try choice("expire-by", expireBy, settings, default: policy.expiry)
        policy.first = try choice("evict-first", evictFirst, settings, default: policy.first)
        return policy
    }

    private func choice<T: CaseIterable & RawRepresentable>(
        _ name: String, _ flag: String?, _ settings: Settings, default fallback: T,
    ) throws -> T where T.RawValue == String {
        guard let text = settings.text(name, flag: flag) else { return fallback }
        guard let value = T(rawValue: text) else {
            let known = T.allCases.map(\.rawValue).joined(separator: ", ")
            throw SettingsError(message: "\(name) must be one of \(known), not '\(text)'.")
        }
        return value
    }
}
