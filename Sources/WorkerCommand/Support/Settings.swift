import ArgumentParser
import FoundationEssentials
import Jobs
import Yams

/// Where a value comes from: a flag, else the environment, else the configuration file, else its default.
struct Settings {
    private let environment: [String: String]
    private let file: [String: String]

    init(configFile: String?, environment: [String: String] = ProcessInfo.processInfo.environment) throws {
        self.environment = environment
        guard let path = configFile ?? environment["WORKER_CONFIG"] else {
            file = [:]
            return
        }
        file = try Self.read(path)
    }

    /// - Parameter name: as the flag is spelled, without dashes: `per-host`.
    func text(_ name: String, flag: String?) -> String? {
        flag ?? environment[Self.variable(name)] ?? file[name]
    }

    func number(_ name: String, flag: Int?, default fallback: Int, in range: ClosedRange<Int>) throws -> Int {
        guard let text = text(name, flag: flag.map(String.init)) else { return fallback }
        guard let value = Int(text), range.contains(value) else {
            throw SettingsError(
                message:
                    "\(name) must be a whole number from \(range.lowerBound) to \(range.upperBound), not '\(text)'.")
        }
        return value
    }

    /// A switch, which the file and the environment write as `true` or `false`.
    func isOn(_ name: String, flag: Bool) throws -> Bool {
        guard let text = text(name, flag: flag ? "true" : nil) else { return false }
        guard let value = ["true": true, "yes": true, "1": true, "false": false, "no": false, "0": false][text] else {
            throw SettingsError(message: "\(name) must be true or false, not '\(text)'.")
        }
        return value
    }

    /// A list: one flag each, or separated by commas elsewhere.
    func list(_ name: String, flag: [String]) -> [String] {
        if !flag.isEmpty { return flag }
        return (text(name, flag: nil) ?? "").split(separator: ",").map { String($0.trimmingPrefix(" ")) }
    }

    /// A number of bytes: `500`, `64MiB`, `1.5 GB`.
    func bytes(_ name: String, flag: String?, default fallback: Int64) throws -> Int64 {
        guard let text = text(name, flag: flag) else { return fallback }
        let units: [(String, Double)] = [
            ("kib", 1_024), ("mib", 1_048_576), ("gib", 1_073_741_824), ("tib", 1_099_511_627_776), ("kb", 1e3),
            ("mb", 1e6), ("gb", 1e9), ("tb", 1e12), ("k", 1_024), ("m", 1_048_576), ("g", 1_073_741_824), ("b", 1),
        ]
        let lower = text.lowercased().filter { $0 != " " }
        let unit = units.first { lower.hasSuffix($0.0) }
        guard let number = Self.number(lower.dropLast(unit?.0.count ?? 0)), number * (unit?.1 ?? 1) < 9e18 else {
            throw SettingsError(message: "\(name) must be a number of bytes such as 64MiB, not '\(text)'.")
        }
        return Int64(number * (unit?.1 ?? 1))
    }

    /// Milliseconds from seconds, or from a number with `ms`, `s`, `m`, `h` or `d` behind it; a thousand years at most.
    ///
    /// - Parameter forEver: the words that stand for a time without an end, which is -1.
    func milliseconds(
        _ name: String, flag: String?, default fallback: Int64, forEver: [String] = [],
    ) throws -> Int64 {
        guard let text = text(name, flag: flag) else { return fallback }
        if forEver.contains(text) { return -1 }
        let units: [(String, Double)] = [("ms", 1), ("s", 1e3), ("m", 6e4), ("h", 3.6e6), ("d", 8.64e7)]
        let unit = units.first { text.hasSuffix($0.0) }
        guard let number = Self.number(text.dropLast(unit?.0.count ?? 0)), number * (unit?.1 ?? 1e3) <= 3.2e13 else {
            let words = forEver.map { ", or '\($0)' for ever" }.first ?? ""
            throw SettingsError(message: "\(name) must be a time such as 15s, 500ms or 7d\(words), not '\(text)'.")
        }
        return Int64(number * (unit?.1 ?? 1e3))
    }

    /// A number that isn't negative, in digits: what else a Double can be is no size and no time.
    private static func number(_ text: Substring) -> Double? {
        guard text.utf8.allSatisfy({ (48...57).contains($0) || $0 == 46 }) else { return nil }
        return Double(text)
    }

    private static func variable(_ name: String) -> String {
        "WORKER_" + name.uppercased().replacing("-", with: "_")
    }

    /// A flat YAML (or JSON) file, spelled like the flags: `concurrency: 12`.
    private static func read(_ path: String) throws -> [String: String] {
        let text = try InputFile.text(path, as: "configuration file")
        do {
            guard let node = try Yams.compose(yaml: text) else { return [:] }
            guard let mapping = node.mapping else {
                throw SettingsError(message: "The configuration file \(path) must be lines such as 'concurrency: 12'.")
            }
            var values: [String: String] = [:]
            for (key, value) in mapping {
                guard let name = key.string, knownSettings.contains(name) else {
                    let known = knownSettings.sorted().joined(separator: ", ")
                    throw SettingsError(
                        message: "\(path): unknown setting '\(key.string ?? "?")'. The settings are: \(known).")
                }
                let list = value.sequence?.compactMap(\.string).joined(separator: ",")
                guard let text = value.scalar?.string ?? list else {
                    throw SettingsError(message: "\(path): '\(name)' must be one value or a list.")
                }
                values[name] = text
            }
            return values
        } catch let error as YamlError {
            throw SettingsError(message: "The configuration file \(path) is not YAML: \(error).")
        }
    }

    static let knownSettings: Set<String> = [
        "max-frames", "max-animation-pixels", "max-decoder-memory", "require-sandbox", "previews",
        "db", "cache", "wait", "concurrency", "transforms", "per-host", "order", "allow-addresses", "max-body",
        "max-pixels",
        "max-redirects", "connect-timeout", "silence-timeout", "total-timeout", "user-agent", "ca-file", "proxy",
        "max-tries", "retry-delay", "max-age", "min-free", "grace", "assets", "transform-command", "command-timeout",
        "command-output", "rate", "burst", "park-after", "park-time", "contact", "delegate-command",
        "allow-files", "allow-data", "name-lifetime", "header", "host-patience", "redact",
        "cache-max-age", "cache-max-size", "cache-low-water", "expire-by", "evict-first",
        "orphan-grace", "quarantine-age", "collect-every", "links", "read-only-cache", "memory-cache", "backup-dir",
        "backup-every",
        "backup-keep", "keep-jobs",
    ]
}

/// What every command takes.
struct CommonOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The database (WORKER_DB; default worker.db).", valueName: "path"))
    var db: String?

    @Option(help: ArgumentHelp("The cache's folder (WORKER_CACHE; default cache).", valueName: "folder"))
    var cache: String?

    @Option(help: ArgumentHelp("A YAML file of settings, spelled like the flags (WORKER_CONFIG).", valueName: "file"))
    var config: String?

    @Option(
        help: ArgumentHelp(
            "How long to wait while another program writes to the database; then exit code 75 (60s).", valueName: "time"
        ))
    var wait: String?

    @Option(
        help: ArgumentHelp(
            "A query parameter whose values are hidden in what is shown, besides the usual ones; repeatable (WORKER_REDACT).",
            valueName: "name"))
    var redact: [String] = []

    func settings() throws -> Settings { try Settings(configFile: config) }

    func redaction() throws -> Redaction { Redaction(also: try settings().list("redact", flag: redact)) }

    func databasePath(_ settings: Settings) -> String { settings.text("db", flag: db) ?? "worker.db" }
    func cachePath(_ settings: Settings) -> String { settings.text("cache", flag: cache) ?? "cache" }
}
