import Configuration
import Core
import FoundationEssentials
import ImageFiles
import Yams

/// The values of settings. A flag overrides the environment, the environment the configuration file, and the file the
/// default.
struct Settings {
    enum Source: Equatable {
        case environment(String)
        case file(String)
        case standard

        var description: String {
            switch self {
            case .environment(let variable): variable
            case .file(let path): path
            case .standard: "default"
            }
        }
    }

    /// The texts of a setting outside of its flags, and where they were found.
    struct Written: Equatable {
        let texts: [String]
        let source: Source
    }

    private let environment: EnvironmentVariablesProvider
    private let file: InMemoryProvider
    private let path: String
    /// The lines of the file on which settings stand, by their names.
    private let lines: [String: Int]

    init(configFile: String?, environment: [String: String] = ProcessInfo.processInfo.environment) throws {
        self.environment = EnvironmentVariablesProvider(environmentVariables: environment)
        path = configFile ?? environment["WORKER_CONFIG"] ?? ""
        let (values, lines) = path.isEmpty ? ([:], [:]) : try Self.read(path)
        self.lines = lines
        file = InMemoryProvider(
            name: path,
            values: Dictionary(
                uniqueKeysWithValues: values.map {
                    (AbsoluteConfigKey([$0.key]), ConfigValue(.stringArray($0.value), isSecret: false))
                }))
    }

    // MARK: - Values

    /// The value of a setting that has a default.
    func value<T>(_ setting: Setting<T>, _ flag: T?) throws(SettingsError) -> T {
        guard let value = try optional(setting, flag) else {
            throw SettingsError("\(setting.name) is not given, and has no default.")
        }
        return value
    }

    /// The value of a setting that may be missing.
    func optional<T>(_ setting: Setting<T>, _ flag: T?) throws(SettingsError) -> T? {
        if let flag { return flag }
        guard let written = written(setting), let text = written.texts.last else { return nil }
        return try read(text, setting, written.source)
    }

    /// A switch: its flag can turn it on and never off.
    func isOn(_ setting: Setting<Bool>, _ flag: Bool) throws(SettingsError) -> Bool {
        try value(setting, flag ? true : nil)
    }

    /// A list: repeated flags, a list in the file, or text with separators elsewhere.
    func list<T>(_ setting: Setting<T>, _ flags: [T]) throws(SettingsError) -> [T] {
        guard flags.isEmpty, let written = written(setting) else { return flags }
        var values: [T] = []
        for text in elements(of: written, setting) { values.append(try read(text, setting, written.source)) }
        return values
    }

    /// The value from the environment, else from the file, else the default.
    func written(_ setting: some NamedSetting) -> Written? {
        if case .string(let text)? = found(["worker", setting.name], in: environment, as: .string) {
            return Written(texts: [text], source: .environment(setting.variable))
        }
        if case .stringArray(let texts)? = found([setting.name], in: file, as: .stringArray) {
            return Written(texts: texts, source: .file(path))
        }
        return setting.standard.map { Written(texts: [$0], source: .standard) }
    }

    private func found(_ key: [String], in provider: some ConfigProvider, as type: ConfigType) -> ConfigContent? {
        // Best effort: a provider throws only for a value of another type, and these providers have texts only.
        try? provider.value(forKey: AbsoluteConfigKey(key), type: type).value?.content
    }

    /// The elements of a list: those of a file's list unchanged, otherwise the parts between the separators.
    func elements(of written: Written, _ setting: some NamedSetting) -> [String] {
        guard written.texts.count == 1, let text = written.texts.first else { return written.texts }
        return text.split(separator: setting.separator).map { String($0.trimmingPrefix(while: { $0 == " " })) }
    }

    private func read<T>(_ text: String, _ setting: Setting<T>, _ source: Source) throws(SettingsError) -> T {
        do {
            return try setting.read(text)
        } catch {
            throw wrong(setting.name, from: source, error)
        }
    }

    /// A mistake in a value, with where it stands.
    func wrong(_ name: String, from source: Source, _ error: SettingsError) -> SettingsError {
        switch source {
        case .standard: error
        case .environment(let variable): SettingsError("\(variable): \(error.message)")
        case .file(let path):
            SettingsError("\(path)\(lines[name].map { ", line \($0)" } ?? ""): \(error.message)")
        }
    }

    // MARK: - The file

    /// A flat YAML (or JSON) file, spelled like the flags: `concurrency: 12`.
    private static func read(_ path: String) throws -> (values: [String: [String]], lines: [String: Int]) {
        let text = try InputFile.text(path, as: "configuration file")
        do {
            guard let node = try Yams.compose(yaml: text) else { return ([:], [:]) }
            guard let mapping = node.mapping else {
                throw SettingsError("The configuration file \(path) must be lines such as 'concurrency: 12'.")
            }
            var values: [String: [String]] = [:]
            var lines: [String: Int] = [:]
            for (key, value) in mapping {
                let name = key.string ?? "?"
                lines[name] = key.mark?.line
                let place = key.mark.map { "\(path), line \($0.line)" } ?? path
                guard SettingNames.all.contains(name) else {
                    throw SettingsError("\(place): unknown setting '\(name)'. \(SettingNames.advice(for: name))")
                }
                guard let texts = value.sequence.map({ $0.compactMap(\.string) }) ?? value.scalar.map({ [$0.string] })
                else { throw SettingsError("\(place): '\(name)' must be one value or a list.") }
                values[name] = texts
            }
            return (values, lines)
        } catch let error as YamlError {
            throw SettingsError("The configuration file \(path) is not YAML. \(YAMLMistake.sentence(error))")
        }
    }
}

/// The names of all settings, and the nearest name to a misspelt one.
enum SettingNames {
    static let all = Set(AllSettings.list.map(\.name))

    static func advice(for name: String) -> String {
        if let near = NearestWord.find(name, among: all.sorted()) {
            return "Did you mean '\(near)'? 'worker config show' lists all settings."
        }
        return "The settings are: \(all.sorted().joined(separator: ", "))."
    }
}
